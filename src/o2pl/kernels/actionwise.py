"""The action-wise softmax in `LinearValue`: rows are action sets, with one feature row per action."""

from __future__ import annotations

import numpy as np

from o2pl import _core
from o2pl.kernels.linear import BLOCK, Features, HeldFeatures, LinearValue, inverse_propensities, pessimistic_combine
from o2pl.objectives.pessimistic import RISK, VARIANCE, PessimisticLog
from o2pl.protocols import Floats, Ints


def actionwise_value(log: PessimisticLog, features: Features, offsets: Ints, width: int) -> LinearValue:
    """Return `PolicyValue` of `ActionWise` on dense features, without a control variate. features: of all actions."""
    inverse, residuals = inverse_propensities(log, np.float64), log.residuals
    actions = np.ascontiguousarray(log.actions, np.int64)
    held = HeldFeatures(features, np.float64)

    def partial(scores: Floats, sets: slice, params: Floats, cotangents: Floats, sums: Floats) -> None:
        own = slice(sets.start, sets.stop + 1)
        risk, variance = _core.actionwise_partial(
            scores[0], offsets[own], actions[sets], residuals[sets], inverse[sets], float(log.alpha), cotangents
        )
        sums[RISK] += risk
        sums[VARIANCE] += variance

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
