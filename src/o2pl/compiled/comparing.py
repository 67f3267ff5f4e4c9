"""The smaller and the larger of two numbers in kernels.

Like `min` and `max`, which Numba would compile as functions of their own, once for each kind of kernel and of number:
a tenth of the time of a first use.
"""

from __future__ import annotations

import operator
from typing import Any

from o2pl.compiled import instruction


def _first_unless(better: Any) -> Any:
    """Return the typing function of (a, b) -> b if b is better than a, otherwise a."""

    def typed(context: Any, a: Any, b: Any) -> Any:
        kind = context.unify_types(a, b)

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            from numba import types

            first, second = (
                context.cast(builder, value, own, kind) for value, own in zip(values, signature.args, strict=True)
            )
            is_better = context.get_function(better, types.boolean(kind, kind))
            return builder.select(is_better(builder, (second, first)), second, first)

        return kind(a, b), codegen

    return typed


smaller: Any = instruction(_first_unless(operator.lt))
larger: Any = instruction(_first_unless(operator.gt))
