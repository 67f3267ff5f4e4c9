"""One pass over the rows of a log on a GPU: a fused kernel of tiles, by Pallas and Triton.

A program processes tiles of rows: scores Z = X Wᵀ, cotangents D, and adds Xᵀ D to the gradient in its registers; X is
read once. Single-precision numbers are stored as two half-precision ones, X = H + L. They take the same memory, feed
the matrix units without conversion, and can be read as rows and as columns:

    Z = H Wh + H Wl + L Wh    (W = Wh + Wl: 22 bits of each)         Xᵀ D ≈ Hᵀ D    (11 bits, rounded to nearest)

Rounding errors of rows are random and average out: the gradient's error is about 3e-4 of its sampling noise. Half
precision has a narrow range: columns of X and W are scaled by powers of two, and D must stay below 6e4.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from o2pl.kernels.gpu_parts import ObjectiveKind, Rows, gpu_parts

try:
    from jax.experimental.pallas import triton
except ImportError:  # JAX 0.11 says that later versions will not have it: plain XLA does the work then
    triton = None  # type: ignore[assignment]

HALF = jnp.float16
LARGEST = 6e4  # largest half-precision number, with a margin
WIDEST, MOST = 256, 32  # columns of X and of W for which the gradient fits into registers


class Tiles(NamedTuple):
    """Tile settings: rows per tile, warps per program, pipeline stages, number of programs."""

    rows: int
    warps: int
    stages: int
    programs: int


def gpu_tiles_for(width: int, outcome: bool) -> Tiles:
    """Return the fastest of the settings tried on an H200."""
    if _gpu_tile_power(width, 16) <= 32:
        return Tiles(64, 2, 3, 1056)
    if _gpu_tile_power(width, 16) <= 128:
        return Tiles(64, 4 if outcome else 2, 3, 528)
    return Tiles(64, 4, 2, 132)


def fits_gpu_tiles(width: int, n_actions: int, largest: float) -> bool:
    """Whether there is a tile for such a log. largest: of the cotangents"""
    return triton is not None and width <= WIDEST and n_actions <= MOST and largest < LARGEST


def _gpu_tile_power(n: int, least: int) -> int:
    return max(least, 1 << (n - 1).bit_length())


@jax.jit
def gpu_tile_halves(X: Any, scale: Any) -> tuple[Any, Any]:
    """Return X / scale as H + L."""
    scaled = X / scale
    # not `astype` and back, which XLA may optimise away
    high = jax.lax.reduce_precision(scaled, exponent_bits=5, mantissa_bits=10)
    return high.astype(HALF), (scaled - high).astype(HALF)


@lru_cache
def gpu_tiled(kind: ObjectiveKind, n_actions: int, width: int, tiles: Tiles, interpret: bool = False) -> Any:
    """Return a program (W [K, d], number, n, H [m, d], L [m, d], Rows) -> sums per program, gradients [parts, K, d]."""
    K, columns, wide = n_actions, _gpu_tile_power(n_actions, 16), _gpu_tile_power(width, 16)
    dot = triton.dot

    def block(ref: Any, first: Any, across: int, real: int) -> Any:
        """Return rows of a matrix, padded with zero columns."""
        part = ref.at[pl.ds(first, tiles.rows), pl.ds(0, across)]
        if across == real:
            return triton.load(part)
        there = jax.lax.broadcasted_iota(jnp.int32, (tiles.rows, across), 1) < real
        return triton.load(part, mask=there, other=0.0)

    def kernel(*refs: Any) -> None:
        n_ref, number_ref, wh_ref, wl_ref, high_ref, low_ref, *column_refs, gradient_ref, sums_ref = refs
        program, n, number, unit = pl.program_id(0), n_ref[0], number_ref[0], number_ref[1]
        wh, wl = wh_ref[:, :], wl_ref[:, :]

        def step(at: Any, carry: Any) -> Any:
            gradients, sums, lost = carry
            first = (at * tiles.programs + program) * tiles.rows
            high, low = block(high_ref, first, wide, width), block(low_ref, first, wide, width)
            Z = unit * (dot(high, wh) + dot(high, wl) + dot(low, wh))
            there = iter(column_refs)
            own = pl.ds(first, tiles.rows)
            rows = Rows(
                next(there)[own].astype(jnp.int32),
                next(there)[own],
                None if kind.outcome else next(there)[own],
                next(there)[own] if kind.weighed else None,
                block(next(there), first, columns, K) if kind.controlled else None,
            )
            inside = first + jax.lax.iota(jnp.int32, tiles.rows) < n
            added, cotangents = gpu_parts(kind, Z, K, rows, inside, number)
            gradients = [
                g + dot(high, D.astype(HALF), trans_a=True) for g, D in zip(gradients, cotangents, strict=True)
            ]
            # Kahan summation
            kept = []
            for total, error, new in zip(sums, lost, added, strict=True):
                corrected = new - error
                larger = total + corrected
                kept.append((larger, (larger - total) - corrected))
            return gradients, [total for total, _ in kept], [error for _, error in kept]

        zeros = [jnp.zeros(tiles.rows, jnp.float32) for _ in range(kind.sums)]
        start = [jnp.zeros((wide, columns), jnp.float32) for _ in range(kind.parts)], zeros, zeros
        each = tiles.programs * tiles.rows
        gradients, sums, _ = jax.lax.fori_loop(0, (n + each - 1) // each, step, start)
        for part, gradient in enumerate(gradients):
            gradient_ref[part, :, :] = gradient
        for place, total in enumerate(sums):
            sums_ref[place] = total.sum()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    n_columns = 2 + (not kind.outcome) + kind.weighed + kind.controlled
    shape = (kind.parts, wide, columns)
    array: Any = jax.ShapeDtypeStruct
    run_tiles = pl.pallas_call(
        kernel,
        grid=(tiles.programs,),
        in_specs=[anywhere] * (6 + n_columns),
        out_specs=[
            pl.BlockSpec((None, *shape), lambda program: (program, 0, 0, 0)),
            pl.BlockSpec((None, kind.sums), lambda program: (program, 0)),
        ],
        out_shape=[
            array((tiles.programs, *shape), jnp.float32),
            array((tiles.programs, kind.sums), jnp.float32),
        ],
        compiler_params=triton.CompilerParams(num_warps=tiles.warps, num_stages=tiles.stages),
        interpret=interpret,
    )

    @jax.jit
    def run(W: Any, number: Any, n: Any, high: Any, low: Any, rows: Any) -> Any:
        padded = jnp.zeros((wide, columns), jnp.float32).at[:width, :K].set(W.T)
        unit = jnp.exp2(jnp.ceil(jnp.log2(jnp.maximum(jnp.abs(padded).max(), 1e-30))))
        wh, wl = gpu_tile_halves(padded, unit)
        given = [column for column in Rows(*rows) if column is not None]
        numbers = jnp.stack([jnp.asarray(number, jnp.float32), unit])
        gradients, sums = run_tiles(jnp.reshape(n, 1), numbers, wh, wl, high, low, *given)
        return sums, gradients.sum(axis=0)[:, :width, :K].transpose(0, 2, 1)

    return run
