"""The C++ reference (reference.cpp), compiled on the spot for this machine and called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.internals import Outcomes, softmax_value, terms
from benchmarks.measure import Skipped
from o2pl.protocols import Floats, ValueAndGradient

SOURCE = Path(__file__).with_name("reference.cpp")
COMPILE = ("-std=c++17", "-O3", "-march=native", "-ffast-math", "-fPIC", "-pthread", "-c")
# With -ffast-math here too, loading the library would round tiny numbers to 0 in the whole process.
LINK = ("-shared", "-pthread")


def build(source: Path) -> ctypes.CDLL:
    """A C++ file as a loaded library."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        raise Skipped("found no C++ compiler")
    with tempfile.TemporaryDirectory() as folder:
        compiled, made = Path(folder) / "reference.o", Path(folder) / "reference.so"
        for flags, given, result in ((COMPILE, source, compiled), (LINK, compiled, made)):
            done = subprocess.run([compiler, *flags, str(given), "-o", str(result)], capture_output=True, text=True)
            if done.returncode:
                raise Skipped(f"the C++ compiler failed: {done.stderr.strip().splitlines()[-1]}")
        return ctypes.CDLL(str(made))


@cache
def library() -> ctypes.CDLL:
    loaded = build(SOURCE)
    pointer, number, count = ctypes.c_void_p, ctypes.c_double, ctypes.c_int
    long = ctypes.c_int64
    for name, result, arguments in (
        (
            "objective",
            number,
            (pointer, count, count, pointer, long, pointer, pointer, pointer, pointer, number, count, pointer),
        ),
    ):
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def at(array: Any) -> int:
    """Where an array's numbers begin."""
    assert array.flags.c_contiguous
    return int(array.ctypes.data)


def aligned(matrix: Floats) -> Floats:
    """A float32 copy whose first entry lies on a cache line's boundary."""
    room = np.empty(matrix.size + 16, np.float32)
    start = -(room.ctypes.data // 4) % 16
    copy = room[start : start + matrix.size].reshape(matrix.shape)
    copy[:] = matrix
    return copy


class ObjectiveReference:
    """What `softmax_value` computes for a log."""

    def __init__(self, features: Floats, n_actions: int, came: Outcomes, threads: int) -> None:
        n, d = features.shape
        found = terms(came)
        self._arrays = (
            aligned(features.T),
            came.actions.astype(np.int32),
            found.residuals.astype(np.float32),
            (1 / came.propensities).astype(np.float32),
            found.penalty,
        )
        self._shape, self._n, self._shrink, self._threads = (n_actions, d), n, found.shrink, threads

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        W = params.reshape(self._shape).astype(np.float32)
        gradient = np.empty_like(W)
        X, *columns, penalty = map(at, self._arrays)
        value = library().objective(
            at(W), *self._shape, X, self._n, *columns, penalty, self._shrink, self._threads, at(gradient)
        )
        return float(value), gradient.reshape(-1).astype(np.float64)


def both_objectives(
    n: int, d: int, n_actions: int, threads: int, seed: int = 0
) -> tuple[ValueAndGradient, ValueAndGradient, Floats]:
    """Ours and the reference on one log of a uniform logger, and parameters to evaluate both at."""
    generator = np.random.default_rng(seed)
    features = generator.standard_normal((n, d), np.float32)
    actions, rewards = generator.integers(n_actions, size=n), (generator.random(n) < 0.4).astype(np.float64)
    came = Outcomes(actions, rewards, np.full(n, 1 / n_actions))
    ours = softmax_value(features, n_actions, came)
    reference = ObjectiveReference(features, n_actions, came, threads)
    return ours, reference, 0.3 * generator.standard_normal(n_actions * d)
