"""Descent along L-BFGS directions, with pairs (step, change of gradient) stored between solves."""

from __future__ import annotations

import numpy as np

from o2pl import _core
from o2pl.protocols import Array, Floats, Solution, ValueAndGradient


def no_quasi_newton_pairs(memory: int, n_params: int) -> dict[str, Array]:
    """Return an empty ring buffer of `memory` pairs."""
    return {
        "steps": np.zeros((memory, n_params), np.float32),
        "changes": np.zeros((memory, n_params), np.float32),
        "inner": np.zeros(memory),  # step · change
        "at": np.zeros(2, np.int64),  # position of the next pair, number of pairs
    }


def descend_quasi_newton(
    function: ValueAndGradient, params: Floats, pairs: dict[str, Array], iterations: int, tolerance: float,
    negligible: float = 0.0,
) -> Solution:  # fmt: skip
    """Minimise from params; the pairs are used and updated.

    Stops when all entries of the gradient are below tolerance, or when a step gains or predicts at most `negligible`.
    """
    kept = pairs["steps"], pairs["changes"], pairs["inner"], pairs["at"]
    settings = *kept, iterations, tolerance, negligible
    own = getattr(function, "descend", None)  # of a function that knows which parameters can move
    return Solution(*(_core.descend(function, params, *settings) if own is None else own(params, *settings)))
