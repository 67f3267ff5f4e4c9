"""What members need to act, and how kernels get it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from o2pl._core import Packed, Uncertainty
from o2pl.encode import Encoder
from o2pl.features.hashing import Hashed
from o2pl.features.plan import FeaturePlan
from o2pl.features.user_items import UserItems
from o2pl.kernels.offers import PackedOffers
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.cells import Cells
from o2pl.policies.curve import Curve
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.softmax import Softmax
from o2pl.protocols import Floats, State


class ActingMember(NamedTuple):
    """Everything a member needs to act."""

    features: Any  # a FeatureMap
    seen: State
    policy: Any  # a DiscretePolicy, or the only member's ContinuousPolicy
    params: Floats
    plan: FeaturePlan | None  # of the features, if available


def restored(features: Any, kept: State) -> State:
    """Return the state of features, with the parts that files omit."""
    return {**kept, "_slot_of": features.slot_of(kept)} if isinstance(features, Hashed) else kept


def draws_of(policy: Any) -> int:
    """Return the number of posterior draws that act for a member; 1: its policy acts."""
    return policy.draws if isinstance(policy, Curve) else 1


def split(weights: Floats, draws: Sequence[int]) -> Floats:
    """Return the weights of what acts: the draws of a member share its weight."""
    return np.repeat(weights / np.array(draws), draws) if max(draws) > 1 else weights


def stacked_weights(members: Sequence[ActingMember], n_actions: int) -> Floats:
    """Return the weights of all members, [slots, M K]; 0 for slots that a member has not learned yet."""
    W = np.zeros((max(len(member.params) for member in members) // n_actions, len(members), n_actions))
    for m, member in enumerate(members):
        own = member.params.reshape(-1, n_actions)
        W[: len(own), m] = own
    return W.reshape(len(W), -1)


def packed_offers(members: Sequence[ActingMember], encoder: Encoder) -> PackedOffers | None:
    """Pack members on users and items; None if one is of another kind."""
    alike = all(isinstance(m.features, UserItems) and isinstance(m.policy, ActionWise) for m in members)
    if not alike or not encoder.users:
        return None
    return PackedOffers([(member.features, member.seen, member.params) for member in members])


def packed_members(
    members: Sequence[ActingMember], encoder: Encoder, before: Packed | None, uncertainty: Uncertainty | None
) -> Packed | None:
    """Pack the members' parts for the kernels; None if one is of another kind."""
    kinds = {type(member.policy) for member in members}
    known = len(kinds) == 1 and kinds <= {Softmax, ActionWise, Gaussian, Cells}
    if not known or encoder.hashed is not None:
        return None
    plans = [member.plan for member in members if member.plan is not None]
    if len(plans) < len(members):
        return None
    return Packed(plans, [member.params for member in members], kinds == {ActionWise}, before, uncertainty)
