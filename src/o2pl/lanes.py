"""Eight floats at a time, for kernels whose inner loop is a short row that Numba's own vectoriser leaves scalar.

`z = load8(a, i)`, `z = add8(z, x, v)` and `store8(a, i, z)` are one machine instruction or two each. Arrays are flat
float32, indices are not checked: a caller pads its rows to `padded` entries.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # has no types
from numba import types
from numba.extending import intrinsic, models, register_model

LANES = 8
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_EVERY_LANE = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
_FAST = ("contract", "reassoc", "nsz", "arcp")  # as `compiled`


def padded(n: int) -> int:
    """n, rounded up to whole groups of lanes."""
    return -(-n // LANES) * LANES


class _Eight(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Eight")


class _EightModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]  # nor has Numba here


register_model(_Eight)(_EightModel)
_EIGHT: Any = _Eight()


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _load(_context: Any, array: Any, _index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, signature.args[0], args[0], args[1]), align=4)

    return _EIGHT(array, types.intp), codegen


def _store(_context: Any, array: Any, _index: Any, _vector: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, signature.args[0], args[0], args[1]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, _EIGHT), codegen


def _add(_context: Any, _total: Any, _factor: Any, _vector: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[1], ir.Constant(ir.IntType(32), 0))
        factor = builder.shuffle_vector(first, first, _EVERY_LANE)
        return builder.fadd(args[0], builder.fmul(factor, args[2], flags=_FAST), flags=_FAST)

    return _EIGHT(_EIGHT, types.float32, _EIGHT), codegen


load8: Any = intrinsic(_load)  # array[index : index + 8]
store8: Any = intrinsic(_store)  # array[index : index + 8] = vector
add8: Any = intrinsic(_add)  # total + factor * vector
