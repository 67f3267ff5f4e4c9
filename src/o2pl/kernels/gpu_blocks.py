"""Sums and gradient by plain XLA, block by block: on any device, in any precision."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from o2pl.kernels.gpu_parts import ObjectiveKind, Rows, gpu_parts

BLOCK = 2**15  # rows


@lru_cache
def gpu_blocks(kind: ObjectiveKind, n_actions: int) -> Any:
    """Return a program (W [K, d], number, n, X [m, d], Rows) -> sums per block, gradients [parts, K, d]."""

    def one(W: Any, number: Any, n: Any, gradients: Any, each: Any) -> Any:
        first, X, rows = each
        inside = first + jnp.arange(len(X), dtype=jnp.int32) < n
        Z = jnp.dot(X, W.T, precision="highest")
        sums, cotangents = gpu_parts(kind, Z, n_actions, rows, inside, number)
        added = [jnp.dot(D.T, X, precision="highest") for D in cotangents]
        return gradients + jnp.stack(added), jnp.stack([each.sum() for each in sums])

    @jax.jit
    def run(W: Any, number: Any, n: Any, X: Any, rows: Any) -> Any:
        count = len(X) // BLOCK
        split = jax.tree.map(lambda column: column.reshape(count, BLOCK, *column.shape[1:]), (X, Rows(*rows)))
        start = jnp.zeros((kind.parts, *W.shape), W.dtype)
        firsts = jnp.arange(count, dtype=jnp.int32) * BLOCK
        gradients, sums = jax.lax.scan(lambda g, each: one(W, number, n, g, each), start, (firsts, *split))
        return sums, gradients

    return run
