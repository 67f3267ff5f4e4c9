"""The action-wise softmax in `LinearValue`: rows are action sets, with one feature row per action."""

from __future__ import annotations

import math

import numpy as np

from o2pl.compiled import compiled
from o2pl.kernels.linear import BLOCK, Features, HeldFeatures, LinearValue, inverse_propensities, pessimistic_combine
from o2pl.objectives.pessimistic import RISK, VARIANCE, PessimisticLog
from o2pl.objectives.weights import clipped_sums, split_cotangent
from o2pl.protocols import Floats, Ints


def actionwise_value(log: PessimisticLog, features: Features, offsets: Ints, width: int) -> LinearValue:
    """Return `PolicyValue` of `ActionWise` on dense features, without a control variate. features: of all actions."""
    inverse, residuals = inverse_propensities(log, np.float64), log.residuals
    held = HeldFeatures(features, np.float64)

    def partial(scores: Floats, sets: slice, params: Floats, cotangents: Floats, sums: Floats) -> None:
        own = slice(sets.start, sets.stop + 1)
        actionwise_partial(
            scores[0], offsets[own], log.actions[sets], residuals[sets], inverse[sets], log.alpha, cotangents, sums
        )

    bounds = [0, *blocks_of_sets(offsets, max(256, BLOCK // width))]
    combine = pessimistic_combine(log, width)
    return LinearValue(bounds, held, partial, (1, width), combine, parts=2, sums=3, dtype=np.float64)


def blocks_of_sets(offsets: Ints, most: int) -> list[int]:
    """Return the ends of blocks of complete sets with at most `most` rows, or of single sets."""
    ends, n = [0], len(offsets) - 1
    while ends[-1] < n:
        reach = int(np.searchsorted(offsets, offsets[ends[-1]] + most, "right")) - 1
        ends.append(min(max(reach, ends[-1] + 1), n))
    return ends[1:]


@compiled
def actionwise_partial(
    scores: Floats, offsets: Ints, actions: Ints, residuals: Floats, inverse: Floats, alpha: float, D: Floats,
    sums: Floats,
) -> None:  # fmt: skip
    """Compute cotangents D [2, total] from the scores of all sets' actions, which are overwritten."""
    n, begin = len(actions), offsets[0]
    weights, of_risk, of_variance = np.empty(n), np.empty(n), np.empty(n)
    for s in range(n):
        first, last = offsets[s] - begin, offsets[s + 1] - begin
        top = -math.inf
        for r in range(first, last):
            top = max(top, scores[r])
        total = 0.0
        for r in range(first, last):
            scores[r] = math.exp(scores[r] - top)
            total += scores[r]
        for r in range(first, last):
            scores[r] /= total
        weights[s] = scores[first + actions[s]] * inverse[s]
    risk, variance = clipped_sums(weights, residuals, alpha)
    sums[RISK] += risk
    sums[VARIANCE] += variance
    split_cotangent(weights, residuals, alpha, 1, of_risk, of_variance)
    for s in range(n):
        first, last = offsets[s] - begin, offsets[s + 1] - begin
        for r in range(first, last):
            D[0, r], D[1, r] = -of_risk[s] * scores[r], -of_variance[s] * scores[r]
        D[0, first + actions[s]] += of_risk[s]
        D[1, first + actions[s]] += of_variance[s]
