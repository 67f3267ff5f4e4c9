"""JAX helpers: scores and pullbacks of policies that JAX can trace.

A policy's `apply(params, x)` is traced once per number of rows, rounded up to a power of two: few programs are
compiled. Double precision is enabled for our own calls only; the user's setting is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.extras import extra
from o2pl.protocols import Floats, Pullback

if TYPE_CHECKING:
    from types import ModuleType

_LEAST = 64  # smallest number of rows of a program


def jax_module(purpose: str = "learning a neural policy") -> ModuleType:
    with extra("jax", purpose):
        import jax
        import jax.experimental
    return jax


def jax_in_double() -> Any:
    """Return a context in which JAX uses float64 in this thread."""
    jax = jax_module()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return jax.experimental.enable_x64()


def jax_padded(rows: int, least: int = _LEAST) -> int:
    """Return the next power of two."""
    return max(least, 1 << max(rows - 1, 0).bit_length())


def jax_grown(array: Floats, rows: int) -> Floats:
    """Return the array padded with zero rows."""
    if len(array) == rows:
        return array
    out = np.zeros((rows, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


@lru_cache
def _jax_programs(policy: Any) -> tuple[Any, Any]:
    jax = jax_module()

    def pull(params: Any, x: Any, cotangent: Any) -> Any:
        return jax.vjp(lambda own: policy.apply(own, x), params)[1](cotangent)[0]

    return jax.jit(policy.apply), jax.jit(pull)


def jax_pulled_back(policy: Any, params: Floats, x: Floats) -> tuple[Floats, Pullback]:
    """Return the scores of rows x in their precision, and their pullback by JAX."""
    score, pull = _jax_programs(policy)
    rows, dtype = len(x), x.dtype if x.dtype == np.float64 else np.dtype(np.float32)
    theta, x = params.astype(dtype), jax_grown(x.astype(dtype, copy=False), jax_padded(len(x)))
    with jax_in_double():
        scores = np.asarray(score(theta, x))

    def pullback(cotangent: Floats) -> Floats:
        with jax_in_double():
            return np.asarray(pull(theta, x, jax_grown(np.asarray(cotangent, dtype), len(x))), np.float64)

    return scores[:rows], pullback


@lru_cache
def _jax_alone(policy: Any) -> Any:
    jax = jax_module()
    return jax.jit(lambda params, x: jax.lax.map(lambda row: policy.apply(params, row[None])[0], x))


def jax_scored_alone(policy: Any, params: Floats, x: Floats) -> Floats:
    """Return scores in double precision, row by row: a row's result does not depend on other rows."""
    with jax_in_double():
        scores = _jax_alone(policy)(params, jax_grown(x.astype(np.float64), jax_padded(len(x), 1)))
    return np.asarray(scores, np.float64)[: len(x)]


def jax_slopes(policy: Any, params: Floats, x: Floats, outputs: Floats) -> Floats:
    """Return the gradient of outputs · scores by the inputs of each row, in double precision. [n, d]"""
    jax = jax_module()
    with jax_in_double():
        slopes = jax.grad(lambda rows: (policy.apply(params, rows).reshape(len(x), -1) @ outputs).sum())(x)
        return np.asarray(slopes, np.float64)


def jax_unravelled(tree: object) -> tuple[Floats, Callable[[Any], Any]]:
    """Return the flat vector of a tree of arrays, and the function that restores the tree."""
    jax = jax_module()
    with jax_in_double():
        leaves, form = jax.tree_util.tree_flatten(tree)
        arrays = [np.asarray(leaf, np.float64) for leaf in leaves]
    shapes = [array.shape for array in arrays]
    ends = np.cumsum([array.size for array in arrays]).tolist()

    def formed(flat: Any) -> Any:
        starts = [0, *ends[:-1]]
        parts = [flat[a:b].reshape(shape) for a, b, shape in zip(starts, ends, shapes, strict=True)]
        return jax.tree_util.tree_unflatten(form, parts)

    return np.concatenate([array.reshape(-1) for array in arrays] or [np.empty(0)]), formed
