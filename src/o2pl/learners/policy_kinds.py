"""Which policy classes and features suit which contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from o2pl.data.kinds import DICTIONARIES, MATRIX, OFFER, WORDS
from o2pl.engine.member import LINEAR, Member
from o2pl.errors import InvalidInput
from o2pl.features import Chain, Hashed, Standardise, UserItems
from o2pl.policies import ActionWise, NeuralSets, Softmax, SparseSoftmax
from o2pl.policies.finite import FiniteClass, FinitePolicies
from o2pl.policies.neural import innermost_neural, is_neural, neural_with_actions
from o2pl.protocols import FeatureMap, Policy

BY_CONTEXTS = ("union", "neural")  # policy names whose class depends on the contexts
# The classes of these policies, by the kind of contexts.
OF_KINDS = {
    ("union", WORDS): "hashed",
    ("linear", WORDS): "hashed",
    ("union", MATRIX): "actionwise",
    ("union", OFFER): "items",
    ("union", DICTIONARIES): "hashed actionwise",
    ("actionwise", OFFER): "items",
    ("neural", MATRIX): "neural actionwise",
    ("neural", OFFER): "neural items",
    ("hashed", DICTIONARIES): "hashed actionwise",
}


def policy_for_offers(member: Member, shared: int) -> Member:
    """Return the member with features of users and items; shared: number of user features. Networks make their own."""
    if isinstance(member.policy, NeuralSets) and isinstance(member.features, Standardise):
        return replace(member, policy=replace(member.policy, shared=shared)) if member.policy.towers else member
    if is_neural(member.policy):
        return member
    features = UserItems() if isinstance(member.features, Standardise) else member.features
    if not isinstance(features, UserItems):
        return member
    return replace(member, features=replace(features, shared=shared))


def policies_have_items(members: Sequence[Member]) -> bool:
    """Return whether contexts have their actions. Members that disagree are an error."""
    sets = {m.policy is not None and bool(getattr(innermost_neural(m.policy), "sets", False)) for m in members}
    if len(sets) > 1:
        raise InvalidInput("policy: found members with and without action sets, expected one kind of context")
    return sets.pop()


def hashed_policies_features(members: Sequence[Member]) -> Hashed | None:
    """Return the `Hashed` features if contexts are dictionaries. Members that disagree are an error."""
    hashed = [member.features for member in members if isinstance(member.features, Hashed)]
    if hashed and (len(hashed) < len(members) or any(each != hashed[0] for each in hashed)):
        raise InvalidInput("policy: found Hashed and other features, expected the same for all members")
    return hashed[0] if hashed else None


def policies_numbered(members: Sequence[Member]) -> int | None:
    """Return the number of contexts in the tables of finite classes; None if no table is indexed by context."""
    raw = [innermost_neural(member.policy) for member in members if member.features == Chain(())]
    return min((policy.table.shape[1] for policy in raw if isinstance(policy, FiniteClass)), default=None)


def policy_of_member(member: Member, n_actions: int | None) -> Policy:
    """Return the member's policy, or a linear softmax."""
    if member.policy is not None:
        return neural_with_actions(member.policy, n_actions)  # type: ignore[no-any-return]  # a policy as it was
    return (SparseSoftmax if isinstance(member.features, Hashed) else Softmax)(n_actions or 0)


def check_policy_kind(member: Member) -> None:
    """Reject a policy that is not for discrete actions, or cannot use the features."""
    if member.policy is None:
        return
    if member.policy.continuous:
        raise InvalidInput(f"policy: found {member.policy!r}, whose actions are real numbers; expected GaussianO2PL")
    if isinstance(member.features, Hashed) and not isinstance(
        innermost_neural(member.policy), SparseSoftmax | ActionWise
    ):
        raise InvalidInput(
            f"policy: found {type(member.policy).__name__} with Hashed features, expected SparseSoftmax or ActionWise"
        )


def features_for_policy(policy: object) -> FeatureMap:
    """Return default features. Shared weights need no intercept; finite classes use contexts unchanged."""
    if isinstance(innermost_neural(policy), FinitePolicies):
        return Chain(())
    return Standardise() if isinstance(innermost_neural(policy), ActionWise) or is_neural(policy) else LINEAR
