"""Base class of the learners with discrete actions: all kinds of contexts, members, and building the engine."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from o2pl.data.action_names import (
    Names,
    action_names_in,
    are_action_names,
    check_action_names,
    numbers_of_action_names,
    renumbered_by_action_names,
)
from o2pl.data.contexts import are_sparse_contexts, as_contexts, context_alone
from o2pl.data.decisions import Decision, ListDecision, listed_decision_ids
from o2pl.data.kinds import MATRIX, OFFER, ROW, WORDS, kind_of_context, kind_of_contexts, offer_of
from o2pl.data.log import Log
from o2pl.data.offers import allowed_in_offer, offered
from o2pl.encode import Encoder
from o2pl.encode.schema import schema_has_new_words, schema_has_texts
from o2pl.engine.change import Change
from o2pl.engine.engine import Engine
from o2pl.engine.list_decisions import list_decision_for_offer, list_decision_propensities, list_decision_rewards
from o2pl.engine.member import Member
from o2pl.engine.schedules import Schedule, as_schedule
from o2pl.engine.simulation import Rewards
from o2pl.engine.spec import Spec
from o2pl.engine.stream import UniformStream
from o2pl.errors import InvalidInput
from o2pl.explaining.explained import Explainable
from o2pl.features import Hashed, UserItems
from o2pl.kernels.gpu import check_gpu, find_gpu
from o2pl.kernels.registry import has_registered_gpu
from o2pl.learners.action_set import add_action, remove_action
from o2pl.learners.base import BanditEstimator
from o2pl.learners.policy_kinds import (
    BY_CONTEXTS,
    OF_KINDS,
    check_policy_kind,
    features_for_policy,
    hashed_policies_features,
    policies_have_items,
    policies_numbered,
    policy_for_offers,
    policy_of_member,
)
from o2pl.policies.neural import innermost_neural
from o2pl.policies.sampling import UniformExploration, Without
from o2pl.protocols import Array, Exploration, Floats, Policy
from o2pl.validation import (
    ANY_REWARD,
    check_actions,
    check_count,
    check_number,
    check_rewards,
)


class DiscreteEstimator(Explainable, BanditEstimator):
    """Base class of learners with discrete actions. Subclasses choose the parts."""

    n_actions: int | None
    actions: Any
    n_actions_: int
    policy: Any
    schedule: Any
    exploration: Any
    device: str

    @abstractmethod
    def _objective(self) -> Any:
        """Return the objective of members that have none. Its rate is the rate of the union."""

    def _ridge(self, policies: list[Policy], schedule: Schedule, sets: bool) -> float | None:
        """Return the ridge of the control variate; None: no control variate."""
        return None

    def _schedule(self, n_actions: int | None) -> Schedule:
        return as_schedule(self.schedule)

    @abstractmethod
    def _sharpness(self) -> float:
        """Return the sharpness of the mixture of policies, or `BY_EXCESS`."""

    def _exploration(self, n_actions: int | None) -> Exploration:
        return discrete_exploration(self.exploration)

    def _exploring(self, n_actions: int | None, names: Names) -> Exploration:
        """Return the exploration rule without the actions that were removed."""
        rule = self._exploration(n_actions)
        known: Any = names or range(n_actions or 0)
        removed = tuple(known.index(action) for action in self._removed if action in known)
        return Without(rule, removed) if removed else rule

    def _change(self, members: tuple[Member, ...]) -> Change | None:
        """Return the change detector; None: no change detection."""
        return None

    # -- decisions among items, or among some of the actions

    def _is_nothing(self, context: object) -> bool:
        fixed = self.n_actions is not None or self.actions is not None
        return context is None or (fixed and type(context) is list and not context)

    def _act_among(self, context: object, items: object, ids: object, exclude: object, slots: int | None) -> Decision:
        if items is None and not self._offers(context):
            return self._act_without(context, ids, exclude, slots)
        offer = offer_of(context, items, ids, exclude)
        if slots is not None:
            slots = check_count("slots", slots)
            if slots > len(offer):
                raise InvalidInput(f"slots: found {slots}, expected at most {len(offer)}, the number of allowed items")
        engine = self._engine or self._begin([offer])
        return list_decision_for_offer(engine.decide, engine.encoder, offer, slots)

    def _listed(self, given: Any, actions: Any, rewards: Any, propensities: Any) -> list[tuple[Any, ...]]:
        slots: list[Any]
        if isinstance(given, ListDecision) or listed_decision_ids(given):
            rewards = actions if rewards is None else rewards
            slots = list(given.decisions) if isinstance(given, ListDecision) else listed_decision_ids(given) or []
            told = list_decision_rewards(rewards, len(slots))
            return [self._decided(slot, reward, None) for slot, reward in zip(slots, told, strict=True)]
        told = list_decision_rewards(rewards, len(actions))
        offer, likely = offer_of(given), list_decision_propensities(propensities, len(actions))
        encoder, made = self._encoder_of([offer]), []
        for slot, (action, reward, propensity) in enumerate(zip(actions, told, likely, strict=True)):
            left = offer.without(actions[:slot], slot)
            made.append((encoder.entry(left), left.place(action), reward, propensity, None))
        return made

    def _offers(self, context: object) -> bool:
        """Return whether a context contains the actions to choose from."""
        if kind_of_context(context) != ROW:
            return True
        if self._engine is None:
            return self.policy not in BY_CONTEXTS and self._new_encoder().items
        return self._engine.encoder.items

    def _act_without(self, context: object, ids: object, exclude: object, slots: int | None) -> Decision:
        """Decide among a fixed number of actions, with some of them excluded."""
        if ids is not None or slots is not None:
            raise InvalidInput("act: found `ids` or `slots` without items, expected act(user, items, slots=3)")
        engine = self._engine or self._begin(context_alone(context))
        allowed = allowed_in_offer(self.n_actions_, exclude, names=self.actions_)
        return engine.decide(context, allowed)

    def add_action(self, name: str | None = None, *, like: int | str | None = None) -> int | str:
        """Add an action to those that are chosen from, and return it. All that was learned is kept.

        The learner learns from its whole log again, which takes as long as `fit`. It then tries the new action as it
        would at its beginning. An action that was removed comes back with what was learned of it.

        Parameters
        ----------
        name
            Its name. None: actions are numbers, and it gets the next one.
        like
            An action that it probably resembles: the new one begins with its predictions, until it has rewards of its
            own.
        """
        return add_action(self, name, like)

    def remove_action(self, action: int | str) -> Self:
        """Never choose this action again; its probability is 0. Its rows stay in the log, and it can be added again."""
        remove_action(self, action)
        return self

    # -- the acting policy

    def predict_proba(self, contexts: object) -> Floats:
        """Return the acting policy's probabilities, [n, K]; for action sets, flat, one per (context, action)."""
        return self._begun().decider.probabilities(self._begun().encoder.encode(contexts))

    def predict(self, contexts: object) -> Array:
        """Return the most likely action of each context, [n]: its name or item id if actions have names."""
        rows = self._begun().encoder.encode(contexts)
        probabilities = self._begun().decider.probabilities(rows)
        likeliest = as_contexts(rows).likeliest(probabilities)
        if self._begun().encoder.items:
            return offered(contexts, likeliest.tolist())
        return np.array(self.actions_)[likeliest] if self.actions_ else likeliest

    @property
    def actions_(self) -> Names:
        """The names of the actions, in the order of `predict_proba`; empty if they have none."""
        return self._begun().log.action_names

    # -- building the engine

    def _kind_of(self, contexts: object) -> str:
        kind = kind_of_contexts(contexts)
        fixed = self.n_actions is not None or self.actions is not None
        if kind == MATRIX and fixed and isinstance(self.policy, str) and self.policy in BY_CONTEXTS:
            return ROW  # several rows instead of one: rejected later with a clear message
        if kind == MATRIX and any(isinstance(member.features, UserItems) for member in self._given_members(kind)):
            return OFFER  # without a user
        named = kind == ROW and isinstance(self.policy, str) and (self.policy, WORDS) in OF_KINDS
        if named and (are_sparse_contexts(contexts) or schema_has_new_words(contexts)):
            return WORDS
        if (
            kind == ROW
            and not named
            and schema_has_texts(contexts)
            and hashed_policies_features(self._given_members(kind)) is None
        ):
            raise InvalidInput(
                f"contexts: found texts with policy={self.policy!r}, which has columns for categories; expected"
                " policy='hashed', which splits them into words and pairs of words, or numbers, such as an embedding"
            )
        return kind

    def _members(self, kind: str, shared: int | None = None) -> tuple[Member, ...]:
        """Return the members given by `policy` for this kind of contexts. shared: number of user features."""
        members = self._given_members(kind)
        return tuple(policy_for_offers(member, shared or 0) for member in members) if kind == OFFER else members

    def _given_members(self, kind: str) -> tuple[Member, ...]:
        if isinstance(self.policy, str):
            name = OF_KINDS.get((self.policy, kind), self.policy)
            if name in self._classes_of_policies:
                return self._classes_of_policies[name]
        if isinstance(self.policy, Member):
            return (self.policy,)
        if isinstance(self.policy, Hashed):
            return (Member(self.policy),)
        if hasattr(self.policy, "forward"):
            return (Member(features_for_policy(self.policy), self.policy),)
        if isinstance(self.policy, list | tuple) and self.policy and all(isinstance(m, Member) for m in self.policy):
            return tuple(self.policy)
        known = sorted(self._classes_of_policies)
        raise InvalidInput(
            f"policy: found {self.policy!r}, expected one of {known}, a policy, a Member or several Members"
        )

    def _new_encoder(self, kind: str = ROW, **known: Any) -> Encoder:
        members = self._members(kind)
        hashed, items = hashed_policies_features(members), policies_have_items(members)
        if kind == OFFER and not items:
            raise InvalidInput(
                f"policy: found {self.policy!r} with a user and items, expected 'union' (the default), 'items',"
                " or members with ActionWise()"
            )
        encoding = None if hashed is None else hashed.encoding
        return Encoder(kind, items=items, hashed=encoding, numbered=policies_numbered(members), **known)

    def _make_engine(self, encoder: Encoder, n_actions: int | None, names: Names = ()) -> Engine:
        members = self._members(encoder.kind, encoder.shared)
        sets, sparse = encoder.items, encoder.hashed is not None
        for member in members:
            check_policy_kind(member)
        if not sets:
            given_by = [innermost_neural(member.policy) for member in members if member.policy is not None]
            own = {int(policy.n_actions) for policy in given_by if policy.n_actions is not None}
            if len(own) > 1:
                raise InvalidInput(f"policy: found members with {sorted(own)} actions, expected one number of actions")
            names = self._given_names(sets) or names
            given = len(names) if self.n_actions is None and names else self.n_actions
            self.n_actions_ = n_actions = _agreed_discrete_actions(next(iter(own), None), given, n_actions)
            if names and len(names) != n_actions:
                raise InvalidInput(
                    f"actions: found {len(names)} names ({', '.join(names[:8])}) for {n_actions} actions,"
                    " expected one per action: actions=[...] with all names"
                )
        else:
            n_actions, names = None, self._given_names(sets)
        watch, change = None, self._change(members)
        if change is not None:
            members, place = change.watch(members, sets)
            watch = change, place
        policies, schedule = [policy_of_member(member, n_actions) for member in members], self._schedule(n_actions)
        ends = self._ends()
        spec = Spec(
            members, policies, self._objective(), schedule, self._ridge(policies, schedule, sets),
            self._sharpness(), self._exploring(n_actions, names), watch,
            self._checked_device(members, policies, sets, sparse), ends is None,
        )  # fmt: skip
        log = Log(
            encoder.width or 0, action_sets=sets, sparse=sparse, n_actions=n_actions, reward_range=ends or (0.0, 1.0),
            action_names=names, shared=encoder.shared,
        )  # fmt: skip
        return Engine(spec, encoder, log, UniformStream(self.random_state))

    def _checked_device(self, members: Sequence[Member], policies: Sequence[Policy], sets: bool, sparse: bool) -> str:
        """Return the device of the objectives. A GPU that no member can use is an error."""
        device = check_gpu(self.device)
        if device == "cpu":
            return device
        find_gpu(device)  # raises if something is missing
        kind = ("sparse sets" if sets else "sparse") if sparse else "sets" if sets else "dense"
        of = [type(member.objective or self._objective()) for member in members]
        if not any(has_registered_gpu(type(policy), own, kind) for policy, own in zip(policies, of, strict=True)):
            names = ", ".join(sorted({type(policy).__name__ for policy in policies}))
            raise InvalidInput(
                f"device: found {device!r} with {names} on {kind} contexts, which cannot use it; expected 'cpu', or"
                " linear,"
                " quadratic or neural policies on numeric rows"
            )
        return device

    # -- input

    def _check_actions(self, encoder: Encoder, rows: Any, actions: Any) -> Array:
        if len(np.atleast_1d(actions)) != len(rows):
            raise InvalidInput(f"actions: found {len(np.atleast_1d(actions))}, expected one per context ({len(rows)})")
        return check_actions(actions, rows.sizes if encoder.items else self._known_actions(encoder))

    def _known_actions(self, encoder: Encoder) -> int | None:
        if encoder.items:
            return None
        if self._engine is not None:
            return self.n_actions_
        if self.n_actions is None:
            return len(self._given_names(encoder.items)) or None
        return check_count("n_actions", self.n_actions)

    def _given_names(self, items: bool) -> Names:
        """Return the action names from the constructor."""
        if self.actions is None:
            return ()
        if items:
            raise InvalidInput("actions: found names with action sets, expected None: items differ from round to round")
        return check_action_names(self.actions)

    def _numbered_actions(
        self, encoder: Encoder, actions: Any, names: Names, n_actions: int | None
    ) -> tuple[Any, Names]:
        own = self._given_names(encoder.items) if self._engine is None else self.actions_
        words = are_action_names(actions)
        if encoder.items or not (own or names or words):
            return actions, ()
        if not own and self._engine is None:  # the first batch sets the names
            own = names or action_names_in(actions)
            if n_actions is not None and len(own) < n_actions:
                raise InvalidInput(f"log: found names for {len(own)} of {n_actions} actions, expected all or none")
        if not own:
            first = (names or action_names_in(actions))[0]
            raise InvalidInput(
                f"actions: found names, such as {first!r}, expected integers from 0 to {self.n_actions_ - 1}, as in the"
                f" learner's first data; to use names: {type(self).__name__}(actions=[...])"
            )
        if not (names or words):
            numbers_of_action_names(actions, own)  # raises an error that names the row
        return numbers_of_action_names(actions, own) if words else renumbered_by_action_names(actions, names, own), own

    def _action_bounds(self, encoder: Encoder) -> tuple[float, float]:
        return 0, math.inf if encoder.items else self.n_actions_  # sizes of sets vary: the engine checks

    def _rewards(self, encoder: Encoder, rounds: int, rewards: object) -> tuple[Rewards, int | None]:
        if callable(rewards):
            known = self._known_actions(encoder)
            if known is None:
                raise InvalidInput("n_actions: found None, expected a number, to run in an environment")
            rows = np.arange(rounds)
            rewards = np.stack([rewards(rows, np.full(rounds, a)) for a in range(known)], axis=1)
        table = np.asarray(rewards, np.float64)[:rounds]
        if table.ndim != 2 or len(table) != rounds:
            raise InvalidInput(f"rewards: found shape {table.shape}, expected ({rounds}, number of actions)")
        expected = self._known_actions(encoder)
        if expected is not None and table.shape[1] != expected:
            raise InvalidInput(f"rewards: found {table.shape[1]} actions, expected {expected}")
        check_rewards(table.reshape(-1), self._ends() or ANY_REWARD)
        return Rewards(lambda rows, actions: table[rows, actions], table), table.shape[1]


def discrete_exploration(given: object, instead: str = "") -> Exploration:
    """Return an exploration rule: a number ε becomes uniform exploration. instead: alternatives, for the message."""
    if hasattr(given, "at"):
        rule: Exploration = given
        return rule
    return UniformExploration(
        check_number("exploration", given, 0, 1, instead=f"{instead}a rule with a method `at`, or ")
    )


def _agreed_discrete_actions(of_policy: int | None, given: int | None, seen: int | None) -> int:
    """Return the number of actions from the policy, the constructor or the data. A contradiction is an error."""
    known = of_policy if of_policy is not None else given
    if known is None:
        known = seen
    if known is None:
        raise InvalidInput("n_actions: found None, expected a number (or data before the first decision)")
    if given is not None and given != known:
        raise InvalidInput(f"n_actions: found {given}, expected {known}, the number of actions of the policy")
    return check_count("n_actions", known)
