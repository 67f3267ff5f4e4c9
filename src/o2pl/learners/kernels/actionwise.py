"""The action-wise softmax's objective and gradient as one compiled call, in one pass over the log."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.compiled import compiled, exp_any
from o2pl.learners.kernels.one_pass import ROWS, combine, gather, largest, packed, put_together
from o2pl.learners.kernels.softmax import phi_numbers
from o2pl.objectives.penalty import Phi
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.objectives.weights import clipped_sums, split_cotangent
from o2pl.protocols import Floats, Ints
from o2pl.rows import ActionSets

_LARGEST = np.finfo(np.float64).max  # in place of ∞, which times a probability of 0 would be none


@compiled
def actionwise_objective(
    params: Floats,
    values: Floats,
    places: Ints,
    bounds: Ints,
    offsets: Ints,
    actions: Ints,
    residuals: Floats,
    inverse_propensities: Floats,
    alpha: float,
    penalty: tuple[float, float, float, float, float],
    shrink: float,
    by_row: Floats,
    by_set: Floats,
    sums: Floats,
    gradient: Floats,
) -> float:
    """V(π_θ) + shrink |θ|²/2; the gradient goes to `gradient`. params, gradient [d]; values, places as `packed`.

    Block b holds the sets from bounds[b] to bounds[b + 1]. by_row [3, rows of the largest block], by_set [4, its sets]
    and sums [2, d] are to work in.
    """
    d, n = len(params), len(actions)
    for i in range(d):
        sums[0, i], sums[1, i] = 0.0, 0.0
    risk, variance = 0.0, 0.0
    for b in range(len(bounds) - 1):
        start, stop = bounds[b], bounds[b + 1]
        sets, first, last = stop - start, offsets[start], offsets[stop]
        m = last - first
        width = places[b + 1] - places[b]
        block = values[d * places[b] : d * places[b + 1]].reshape(d, width)
        powers, of_losses, of_weights = by_row[0, :width], by_row[1, :width], by_row[2, :width]
        shares, weights, c_losses, c_weights = by_set[0, :sets], by_set[1, :sets], by_set[2, :sets], by_set[3, :sets]
        combine(params, block, powers)
        _exponentials_of_sets(powers, offsets[start : stop + 1], shares)
        for s in range(sets):
            played = powers[offsets[start + s] - first + actions[start + s]]
            weights[s] = played * shares[s] * inverse_propensities[start + s]
        more = clipped_sums(weights, residuals[start:stop], alpha)
        risk += more[0]
        variance += more[1]
        split_cotangent(weights, residuals[start:stop], alpha, 1, c_losses, c_weights)
        for s in range(sets):  # ∂/∂logits of c log π(a_s|x_s): c (1{a = a_s} - π)
            at, end = offsets[start + s] - first, offsets[start + s + 1] - first
            a, c = -c_losses[s] * shares[s], -c_weights[s] * shares[s]
            for r in range(at, end):
                of_losses[r] = a * powers[r]
                of_weights[r] = c * powers[r]
            of_losses[at + actions[start + s]] += c_losses[s]
            of_weights[at + actions[start + s]] += c_weights[s]
        for r in range(m, width):
            of_losses[r], of_weights[r] = 0, 0
        gather(block, of_losses, of_weights, sums)
    return put_together(params, risk, variance, n, penalty, shrink, sums, gradient)


@compiled
def _exponentials_of_sets(logits: Floats, offsets: Ints, shares: Floats) -> None:
    """In place, exp(logit - its set's maximum); shares = the reciprocals of the sets' sums.

    The sets between offsets[0] and offsets[-1] come first in `logits`.
    """
    first = offsets[0]
    for s in range(len(shares)):
        at, end = offsets[s] - first, offsets[s + 1] - first
        top = logits[at]
        for r in range(at + 1, end):
            top = max(top, logits[r])
        for r in range(at, end):
            logits[r] -= top
    for r in range(len(logits)):  # over all sets at once: one alone is too short to vectorise
        logits[r] = exp_any(logits[r])
    for s in range(len(shares)):
        at, end = offsets[s] - first, offsets[s + 1] - first
        total = logits[at]
        for r in range(at + 1, end):
            total += logits[r]
        shares[s] = 1 / total


@compiled
def blocks_of_sets(offsets: Ints, most: int) -> Ints:
    """Whole sets, together at most `most` rows, or one set alone: the bounds of the blocks, as numbers of sets."""
    n = len(offsets) - 1
    bounds = np.zeros(n + 1, np.int64)
    blocks, first = 0, 0
    for s in range(1, n + 1):
        if s == n or offsets[s + 1] - offsets[first] > most:
            blocks += 1
            bounds[blocks] = s
            first = s
    return bounds[: blocks + 1].copy()


class ActionWiseValue:
    """`policy_value` for `ActionWise`, compiled: a function of the flat parameters for an oracle."""

    def __init__(self, features: ActionSets, objective: Pessimistic, l2: float) -> None:
        n, d = len(features), features.values.shape[1]
        offsets = np.ascontiguousarray(features.offsets, np.int64)
        bounds = blocks_of_sets(offsets, ROWS)
        values, places = packed(features.values, offsets[bounds], features.values.dtype)
        with np.errstate(over="ignore"):
            inverse = np.minimum(1 / objective.propensities, _LARGEST)
        penalty: Any = objective.penalty
        assert isinstance(penalty, Phi)
        self._fixed = (
            values,
            places,
            bounds,
            offsets,
            objective.actions,
            objective.residuals,
            inverse,
            float(objective.alpha),
            phi_numbers(penalty),
            l2 / n,
            np.empty((3, largest(places))),
            np.empty((4, largest(bounds))),
            np.empty((2, d)),
        )

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        gradient = np.empty_like(params)
        return actionwise_objective(params, *self._fixed, gradient), gradient
