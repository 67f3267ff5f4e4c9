"""Vectorisable exponential functions for softmax, and the logarithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled, compiled_inlined, instruction, within_kernels
from o2pl.compiled.comparing import larger, smaller


def _bitcast(_context: Any, _bits: Any) -> Any:
    from numba import types

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), codegen


def _bitcast64(_context: Any, _bits: Any) -> Any:
    from numba import types

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), codegen


def _bitcast_to_bits(_context: Any, _number: Any) -> Any:
    from numba import types

    def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), codegen


_float_from_bits: Any = instruction(_bitcast)
_bits_of_double: Any = instruction(_bitcast_to_bits)
_double_from_bits: Any = instruction(_bitcast64)


_LOWEST, _LOG2E, _HALF, _ONE = np.float32(-87.0), np.float32(1.4426950408889634), np.float32(0.5), np.float32(1.0)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # ln 2 in two parts, so x - k ln 2 is exact
_EXP = tuple(np.float32(1 / math.factorial(k)) for k in (7, 6, 5, 4, 3, 2))  # Taylor on |r| ≤ ln(2)/2: error below 1e-7


def _exp32(x: Any) -> Any:
    x = larger(x, _LOWEST)
    k = np.floor(x * _LOG2E + _HALF)
    r = x - k * _LN2_HIGH - k * _LN2_LOW
    p = _EXP[0]
    for j in range(1, 6):
        p = p * r + _EXP[j]
    p = p * r * r + r + _ONE
    return p * _float_from_bits(np.int32((np.int32(k) + np.int32(127)) << np.int32(23)))


def _exp64(x: Any) -> Any:
    return math.exp(x)


exp32 = compiled_inlined(_exp32)  # `exp` of float32 alone: compiles faster


def exp(x: Any) -> Any:
    """Return e^x for x ≤ 0. float32: a branch-free polynomial (relative error 1e-7); otherwise the library function."""
    return math.exp(x)


@within_kernels(exp)
def _exp_in_kernels(x: Any) -> Any:
    from numba import types

    return _exp32 if x == types.float32 else _exp64


_LOWEST64, _HIGHEST64 = -708.0, 709.0  # below, e^x is subnormal; above, it overflows
_LOG2E64, _LN2 = math.log2(math.e), math.log(2)
_EXP64 = tuple(1 / math.factorial(k) for k in range(13, 1, -1))  # Taylor on |r| ≤ ln(2)/2: error below 1e-16


@compiled
def exp_any(x: float) -> float:
    """Return e^x, branch-free and vectorisable (relative error |x| 1e-16); 0 below -708, ∞ above 709."""
    y = smaller(larger(x, _LOWEST64), _HIGHEST64)
    k = np.floor(y * _LOG2E64 + 0.5)
    r = y - k * _LN2
    p = _EXP64[0]
    for j in range(1, 12):
        p = p * r + _EXP64[j]
    p = p * r * r + r + 1.0
    p *= _double_from_bits((np.int64(k) + np.int64(1023)) << np.int64(52))
    if x > _HIGHEST64:
        p = math.inf
    if x < _LOWEST64:
        p = 0.0
    return float(p)


EXPONENT_OF_ONE = 1023
_FRACTION_BITS, _FRACTION = np.uint64(52), np.uint64((1 << 52) - 1)
_ROOT_OF_TWO = math.sqrt(2)
_ATANH = tuple(2 / (2 * j + 1) for j in range(11, -1, -1))  # log z = 2 atanh s, s = (z - 1)/(z + 1), |s| ≤ 0.172


@compiled
def split_exponent(x: float) -> tuple[Any, float]:
    """Return (e, m) with x = m 2^(e - 1023) and 1 ≤ m < 2, for a normal x > 0; exact."""
    bits = _bits_of_double(x)
    return bits >> _FRACTION_BITS, _double_from_bits(
        np.int64((bits & _FRACTION) | (np.uint64(EXPONENT_OF_ONE) << _FRACTION_BITS))
    )


@compiled
def log_any(x: float) -> float:
    """Return log x of a normal x > 0, branch-free and vectorisable (error 4e-16 max(1, |log x|))."""
    exponent, z = split_exponent(x)
    k = float(exponent) - EXPONENT_OF_ONE
    if z > _ROOT_OF_TWO:
        z, k = 0.5 * z, k + 1.0
    s = (z - 1.0) / (z + 1.0)
    p = _ATANH[0]
    for j in range(1, 12):
        p = p * (s * s) + _ATANH[j]
    return float(k * _LN2 + p * s)
