"""Objectives on a GPU: the log is on the GPU, and each evaluation is one pass over it.

`device="gpu"` uses the fused tiles if they support the log, and plain XLA otherwise; `device="xla"` uses plain XLA on
JAX's default device. Only parameters, sums and gradients are transferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.kernels.linear import Features
from o2pl.objectives.outcome import OutcomeLog
from o2pl.objectives.pessimistic import PessimisticLog
from o2pl.policies.jax_helpers import jax_in_double, jax_module
from o2pl.protocols import Floats

DEVICES = ("cpu", "gpu", "xla")
_MOST = 2**30  # largest number of elements of an array: indices have 32 bits
_STRETCH = 2**18  # rows per block of features
_LARGEST = float(np.finfo(np.float32).max)
_LONG = 2**22  # elements of a log from which the fused tiles' rounding is negligible and their speed matters


class Piece(NamedTuple):
    """Rows of the log that are one array on the GPU."""

    n: int
    X: tuple[Any, ...]  # features, [m, d]; or two halves
    scale: Floats  # divisors of the features, [d]
    rows: Any  # `gpu_parts.Rows`, [m] each


def find_gpu(name: str) -> Any:
    """Return JAX's device of this name."""
    jax = jax_module(f"device={name!r}")
    if name != "gpu":
        return jax.devices("cpu" if name == "cpu" else None)[0]
    try:
        return jax.devices("gpu")[0]
    except RuntimeError:
        found = ", ".join(sorted({each.platform for each in jax.devices()}))
        raise InvalidInput(
            f"device: found 'gpu', but JAX sees no GPU here (it has: {found}); install JAX for it"
            " (pip install 'jax[cuda12]'), or use device='cpu'"
        ) from None


def check_gpu(name: object) -> str:
    if name not in DEVICES:
        raise InvalidInput(f"device: found {name!r}, expected 'cpu', 'gpu', or 'xla' for JAX's own device")
    return str(name)


def gpu_bytes_needed(n: int, width: int, n_actions: int, controlled: bool) -> int:
    """Return the GPU memory needed while the log is loaded: features twice for a moment, and the columns."""
    return n * (8 * width + 16 + 4 * n_actions * controlled)


def check_gpu_room(device: object, n: int, width: int, n_actions: int, controlled: bool) -> None:
    """Reject a log that does not fit into GPU memory, before anything is copied."""
    stats = device.memory_stats() if hasattr(device, "memory_stats") else None
    if not stats or "bytes_limit" not in stats:
        return
    needed, free = (
        gpu_bytes_needed(n, width, n_actions, controlled),
        stats["bytes_limit"] - stats.get("bytes_in_use", 0),
    )
    if needed > free:
        raise InvalidInput(
            f"device: a log of {n:,} rows of {width} features needs {needed / 2**30:.1f} GiB on the card, which has"
            f" {free / 2**30:.1f} GiB free; use device='cpu', or learn from fewer rows"
        )


class GpuValue:
    """θ -> V(π_θ) and its gradient, of a linear softmax. `dtype`: of the features in plain XLA.

    `interpret`: the fused tiles without a GPU, slowly, for tests.
    """

    incremental = False

    def __init__(
        self, log: Any, features: Features, width: int, n_actions: int, device: str, dtype: Any = np.float32,
        interpret: bool = False, held: dict[Any, Any] | None = None,
    ) -> None:  # fmt: skip
        """held: features on the card, for functions that have them in common."""
        from o2pl.kernels import gpu_parts, gpu_tiles
        from o2pl.kernels.gpu_blocks import BLOCK, gpu_blocks

        self.log, self._shape, self._dtype = log, (n_actions, width), np.dtype(dtype)
        self._device = find_gpu(device)
        outcome = isinstance(log, OutcomeLog)
        controlled = not outcome and log.control is not None
        self._kind = gpu_parts.ObjectiveKind(
            outcome, bool(outcome and log.competing), log.weights is not None, controlled
        )
        n = len(log.actions)
        check_gpu_room(self._device, n, width, n_actions, controlled)
        largest = _largest_cotangent_for_gpu(log)
        fits = gpu_tiles.fits_gpu_tiles(width, n_actions, largest) and self._dtype == np.float32
        self.tiled = interpret or (fits and device == "gpu" and n * width >= _LONG)
        if self.tiled:
            tiles = gpu_tiles.gpu_tiles_for(width, outcome)
            self._program = gpu_tiles.gpu_tiled(self._kind, n_actions, width, tiles, interpret)
            self._aligned = tiles.rows * tiles.programs
        else:
            self._program, self._aligned = gpu_blocks(self._kind, n_actions), BLOCK
        try:
            self._pieces = list(self._loaded(features, {} if held is None else held))
        except jax_module().errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            raise InvalidInput(
                f"device: the card ran out of room for {n:,} rows of {width} features; use device='cpu', or learn"
                " from fewer rows"
            ) from error

    def _loaded(self, features: Features, held: dict[Any, Any]) -> Iterator[Piece]:
        from o2pl.kernels.gpu_parts import Rows

        jax, (n_actions, width) = jax_module(), self._shape
        n = len(self.log.actions)
        most = max(self._aligned, _MOST // max(width, n_actions) // self._aligned * self._aligned)
        for start in range(0, n, most):
            own = slice(start, min(start + most, n))
            rows = own.stop - own.start
            room = _rounded_for_gpu(rows, self._aligned)
            key = (start, rows, room, self.tiled, self._dtype)
            if key not in held:
                held[key] = self._features(features, own, room)
            with jax_in_double():
                columns = jax.device_put(Rows(*self._columns(own, room)), self._device)
            X, scale = held[key]
            yield Piece(rows, X, scale, columns)

    def _features(self, features: Features, own: slice, room: int) -> tuple[tuple[Any, ...], Floats]:
        """Return the features on the GPU in the program's form, and their divisors."""
        from o2pl.kernels.gpu_tiles import gpu_tile_halves

        X = np.zeros((room, self._shape[1]), self._dtype)
        for first in range(own.start, own.stop, _STRETCH):
            last = min(first + _STRETCH, own.stop)
            X[first - own.start : last - own.start] = features(slice(first, last))
        scale = np.ones(self._shape[1], np.float32)
        with jax_in_double():
            put = jax_module().device_put(X, self._device)
            if not self.tiled:
                return (put,), scale
            largest = np.maximum(np.abs(X).max(axis=0, initial=0), 1e-30)
            scale = np.exp2(np.ceil(np.log2(largest))).astype(np.float32)  # powers of two: no rounding
            return gpu_tile_halves(put, scale), scale

    def _columns(self, own: slice, room: int) -> Iterator[Any]:
        log, dtype = self.log, self._dtype

        def filled(column: Any, kind: Any) -> Any:
            out = np.zeros((room, *column.shape[1:]), kind)
            out[: len(column)] = column
            return out

        yield filled(log.actions[own], np.int8 if self._shape[0] < 128 else np.int32)
        if isinstance(log, OutcomeLog):
            yield filled(log.rewards[own], dtype)
            yield None
        else:
            with np.errstate(over="ignore"):
                inverse = np.minimum(1 / log.propensities[own], _LARGEST)
            yield filled(log.residuals[own], dtype)
            yield filled(inverse, dtype)
        yield None if log.weights is None else filled(np.asarray(log.weights)[own], dtype)
        yield filled(log.control.of_rows(own) - log.baseline, dtype) if self._kind.controlled else None

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        K, width = self._shape
        W = params[: K * width].reshape(K, width)
        number = params[-1] if isinstance(self.log, OutcomeLog) else min(self.log.alpha, _LARGEST)
        sums: Floats = np.zeros(self._kind.sums)
        gradients: Floats = np.zeros((self._kind.parts, K, width))
        with jax_in_double():
            found = [
                self._program(
                    (W * piece.scale).astype(self._dtype), self._dtype.type(number), np.int32(piece.n), *piece.X,
                    tuple(piece.rows),
                )
                for piece in self._pieces
            ]  # fmt: skip
            for piece, (of_parts, own) in zip(self._pieces, found, strict=True):
                sums += np.asarray(of_parts, np.float64).sum(axis=0)
                gradients += np.asarray(own, np.float64) * piece.scale
        value, gradient = self.log.combine(params, sums, list(gradients.reshape(self._kind.parts, -1)))
        return value, gradient


def _largest_cotangent_for_gpu(log: Any) -> float:
    """Return a bound of a row's contribution to a cotangent of the scores."""
    most = 1.0 if log.weights is None else float(np.max(log.weights, initial=1.0))
    if isinstance(log, OutcomeLog):
        return most
    assert isinstance(log, PessimisticLog)
    return most * (2 * max(log.alpha, 1.0) ** 2 + 2)


def _rounded_for_gpu(rows: int, aligned: int) -> int:
    """Round up to an eighth of a power of two, so that few programs are compiled as a log grows."""
    eighth = max(1, (1 << max(rows - 1, 1).bit_length()) // 8)
    room = -(-rows // eighth) * eighth
    return -(-room // aligned) * aligned
