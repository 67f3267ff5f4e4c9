"""JAX at one door: scores with their pullback, of policies that JAX can trace.

A policy's `apply(params, x)` is traced once for each number of rows, which is rounded up to a power of two: few
programs are compiled. Double precision is switched on for our own calls alone; the user's setting stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from o2pl.extras import extra
from o2pl.protocols import Floats, Pullback

_LEAST = 64  # rows of a program


def jax_module(purpose: str = "learning a neural policy") -> Any:
    with extra("jax", purpose):
        import jax
        import jax.experimental
    return jax


def in_double() -> Any:
    """A context in which JAX keeps float64 as it is, in this thread."""
    jax = jax_module()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return jax.experimental.enable_x64()


def padded(rows: int, least: int = _LEAST) -> int:
    """The next power of two."""
    return max(least, 1 << max(rows - 1, 0).bit_length())


def grown(array: Floats, rows: int) -> Floats:
    """With rows of 0 at the end."""
    if len(array) == rows:
        return array
    out = np.zeros((rows, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


@lru_cache
def _programs(policy: Any) -> tuple[Any, Any]:
    jax = jax_module()

    def pull(params: Any, x: Any, cotangent: Any) -> Any:
        return jax.vjp(lambda own: policy.apply(own, x), params)[1](cotangent)[0]

    return jax.jit(policy.apply), jax.jit(pull)


def pulled_back(policy: Any, params: Floats, x: Floats) -> tuple[Floats, Pullback]:
    """Scores of rows x in their own precision, and their pullback by JAX."""
    score, pull = _programs(policy)
    rows, dtype = len(x), x.dtype if x.dtype == np.float64 else np.dtype(np.float32)
    theta, x = params.astype(dtype), grown(x.astype(dtype, copy=False), padded(len(x)))
    with in_double():
        scores = np.asarray(score(theta, x))

    def pullback(cotangent: Floats) -> Floats:
        with in_double():
            return np.asarray(pull(theta, x, grown(np.asarray(cotangent, dtype), len(x))), np.float64)

    return scores[:rows], pullback


@lru_cache
def _alone(policy: Any) -> Any:
    jax = jax_module()
    return jax.jit(lambda params, x: jax.lax.map(lambda row: policy.apply(params, row[None])[0], x))


def scored_alone(policy: Any, params: Floats, x: Floats) -> Floats:
    """Scores in double precision, one row after the other: a row's result does not depend on the rows beside it."""
    with in_double():
        scores = _alone(policy)(params, grown(x.astype(np.float64), padded(len(x), 1)))
    return np.asarray(scores, np.float64)[: len(x)]


def sloped(policy: Any, params: Floats, x: Floats, outputs: Floats) -> Floats:
    """Of each row, the gradient by its inputs of outputs · scores, in double precision. [n, d]"""
    jax = jax_module()
    with in_double():
        slopes = jax.grad(lambda rows: (policy.apply(params, rows).reshape(len(x), -1) @ outputs).sum())(x)
        return np.asarray(slopes, np.float64)


def unravelled(tree: Any) -> tuple[Floats, Callable[[Any], Any]]:
    """A flat vector of what a tree of arrays holds, and what makes such a tree of such a vector."""
    jax = jax_module()
    with in_double():
        leaves, form = jax.tree_util.tree_flatten(tree)
        arrays = [np.asarray(leaf, np.float64) for leaf in leaves]
    shapes = [array.shape for array in arrays]
    ends = np.cumsum([array.size for array in arrays]).tolist()

    def formed(flat: Any) -> Any:
        starts = [0, *ends[:-1]]
        parts = [flat[a:b].reshape(shape) for a, b, shape in zip(starts, ends, shapes, strict=True)]
        return jax.tree_util.tree_unflatten(form, parts)

    return np.concatenate([array.reshape(-1) for array in arrays] or [np.empty(0)]), formed
