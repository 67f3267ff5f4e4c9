"""Compact published policies: drop members and features without weight, and round the weights.

The compact policy differs slightly from the original. The server decides by it and logs its exact propensities.
"""

from __future__ import annotations

import numpy as np

from o2pl._core import Uncertainty
from o2pl.engine.acting import ActingMember
from o2pl.engine.decider import Decider
from o2pl.engine.shortening import GRID
from o2pl.features.hashing import Hashed
from o2pl.policies.sampling import acting_numbers, acting_parts
from o2pl.protocols import Explored, Floats, Ints

_FAINT = 1e-3  # members with a smaller share are dropped
_NONE = np.empty(0)


def compact(decider: Decider) -> Decider:
    """Return a compact copy, for members on hashed features. Others are small and are returned unchanged."""
    if not all(isinstance(member.features, Hashed) for member in decider.members):
        return decider
    first = decider.members[0]
    if decider.knows_items or any(member.seen is not first.seen for member in decider.members):
        return decider
    K = decider.n_actions or 1
    parts = acting_parts(decider.acting, len(decider.members), decider.n_actions or 0)
    loud = parts.weights >= min(_FAINT, parts.weights.max())
    slots = len(first.seen["feature"])
    weights = [
        _rounded_to_compact(member.params, slots, K) for member, one in zip(decider.members, loud, strict=True) if one
    ]
    used = np.any([own.any(axis=1) for own in weights], axis=0)
    used[0] = True  # the intercept
    kept = np.flatnonzero(used)
    kept = kept[
        np.argsort(np.where(kept == 0, -1, first.seen["feature"][kept]))
    ]  # sorted, since similar neighbours compress well
    features = first.features
    seen = {name: first.seen[name][kept] for name in ("feature", "scale")}
    seen["_slot_of"] = features.slot_of(seen)
    members = [
        ActingMember(features, seen, member.policy, own[kept].reshape(-1), None)
        for member, own in zip((m for m, one in zip(decider.members, loud, strict=True) if one), weights, strict=True)
    ]
    explored = Explored(
        parts.epsilon, parts.bonus if parts.bonus.any() else _NONE, _NONE if not decider.n_actions else parts.share
    )
    shares = parts.weights[loud] / parts.weights[loud].sum()
    predicting = parts.predicting[loud] if len(parts.predicting) else parts.predicting
    acting = acting_numbers(shares, parts.sharpness, explored, predicting)
    uncertainty = _compact_slots(decider.uncertainty, kept)
    return Decider(members, acting, decider.sharpness, decider.encoder, None, decider.names, uncertainty=uncertainty)


def _compact_slots(uncertainty: Uncertainty | None, kept: Ints) -> Uncertainty | None:
    """Return it for these slots, rounded. Of the others, all actions are as uncertain."""
    if uncertainty is None:
        return None
    shift, scale, clip, centre, level, spread, optimism = uncertainty.parts
    known = np.minimum(kept, len(spread) - 1) if len(spread) else kept[:0]
    fitted = np.where((kept < len(spread))[:, None], spread[known], spread[:1]) if len(spread) else spread
    rounded = np.maximum(np.rint(fitted * 64) / 64, 1 / 64)
    return Uncertainty.from_parts(shift, scale, clip, centre, level, rounded, optimism)


def _rounded_to_compact(params: Floats, slots: int, K: int) -> Floats:
    """Round to multiples of the grid: the log-odds of a reward change by less than .0001 per weight. [slots, K]"""
    W = np.zeros((slots, K))
    own = params.reshape(-1, K)
    W[: len(own)] = np.rint(own * GRID) / GRID
    return W
