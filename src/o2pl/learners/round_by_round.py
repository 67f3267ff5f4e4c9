"""One decision at a time: `act`, and `update` in all its forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, overload

import numpy as np

from o2pl import _core
from o2pl.data.contexts import context_alone
from o2pl.data.decisions import (
    Decision,
    ListDecision,
    check_decision_ids,
    decision_id_of,
    decision_number_of,
    listed_decision_ids,
)
from o2pl.data.interactions import Interactions
from o2pl.data.many_decisions import Decisions
from o2pl.data.offers import Offer
from o2pl.encode import Encoder
from o2pl.engine.engine import Engine
from o2pl.engine.many import append_many, check_many_once, decide_many
from o2pl.engine.pending import PENDING
from o2pl.errors import InvalidInput
from o2pl.learners.learned import Learned
from o2pl.validation import check_column, check_lengths, check_rewards

_LISTS = (list, tuple)  # `list | tuple` would be rebuilt in every call
_ARRAY = np.ndarray


class RoundByRound(Learned, ABC):
    """A learner that decides and is updated one decision at a time."""

    _action_type: ClassVar[type] = int
    _bounds: tuple[
        float, float, float, float, float, float
    ]  # lower and upper bounds of rewards, actions and propensities
    _places: dict[str, int] | None = None  # index of each action name

    @abstractmethod
    def _begin(self, contexts: object) -> Engine:
        """Return the engine, created for these contexts if there is none."""

    @abstractmethod
    def _checked(
        self, contexts: Any, actions: Any = None, rewards: Any = None, propensities: Any = None,
        encoder: Encoder | None = None,
    ) -> Interactions:  # fmt: skip
        """Check a log or four columns against this learner, and return them as one log."""

    def act(
        self, context: Any = None, items: Any = None, *, ids: Any = None, exclude: Any = None, slots: int | None = None
    ) -> Decision:
        """Draw an action for a context and return it with its propensity.

        Parameters
        ----------
        context
            One context. With `items`, the user: a numeric row or a dictionary. None: nothing is known.
        items
            Items to choose from: a matrix with one row per item, or a list of dictionaries. The products of user and
            item features are learned too.
        ids
            Ids of the items, or the name of the field that contains them. The action is then an id.
        exclude
            Items (ids or indices) or actions that must not be chosen this time.
        slots
            Number of different items to choose, in order. The propensity is that of the whole list.

        Returns
        -------
        Decision
            Unpacks to (action, propensity); the propensity is a density for continuous actions.
        """
        if items is None and self._is_nothing(context):
            context = {}
        if items is None and ids is None and exclude is None and slots is None and type(context) is not Offer:
            return (self._engine or self._begin(context_alone(context))).decide(context)
        return self._act_among(context, items, ids, exclude, slots)

    act = _core.in_one_call(act, "act")

    def _is_nothing(self, context: object) -> bool:
        """Return whether nothing is known of this context: None, or an empty list where no items are expected."""
        return context is None

    def _act_among(self, context: object, items: object, ids: object, exclude: object, slots: int | None) -> Decision:
        raise InvalidInput(f"act: found items, `exclude` or `slots`, which {type(self).__name__} does not have")

    @overload
    def update(self, decision: Decision | str, reward: float, /) -> Self: ...
    @overload
    def update(self, decision: Decision | str, /, *, reward: float) -> Self: ...
    @overload
    def update(self, context: Any, action: Any, reward: float, propensity: float) -> Self: ...
    @overload
    def update(self, user: Any, items: Any, action: Any, reward: float, propensity: float, /) -> Self: ...
    def update(
        self, context: Any, action: Any = None, reward: Any = None, propensity: Any = None, last: Any = None
    ) -> Self:
        """Learn from one decision and its reward. Rewards may arrive late and in any order.

        Call `update(decision, reward)` with the decision that `act` returned, or its `id`. The learner keeps the
        contexts of at least the last 100,000 decisions without a reward; a warning says when older ones are forgotten.
        A second reward for the same decision is an error. Rewards are learned in the order in which they are told: tell
        all after the same time, also those of 0. Or call `update(context, action, reward, propensity)` with the
        propensity of the decision; for a user and items, `update(user, items, action, reward, propensity)`. A list
        takes one reward per slot, or one for the whole list.
        """
        if last is not None:
            context, action, reward, propensity = (context, action), reward, propensity, last
        if type(context) is not _ARRAY or type(action) is not self._action_type:  # otherwise it is no list
            several = isinstance(action, _LISTS) or (isinstance(action, _ARRAY) and action.ndim > 0)
            if several or isinstance(context, ListDecision) or listed_decision_ids(context):
                return self._update_list(context, action, reward, propensity)
        number = None
        if propensity is not None and self._is_nothing(context):
            context = {}
        if propensity is None:
            context, action, reward, propensity, number = self._decided(context, action, reward)
        engine = self._engine
        if engine is None:
            self._checked(context_alone(context), [action], [reward], [propensity])
            engine = self._begin(context_alone(context))
        if type(context) is Offer:
            context, action = engine.encoder.entry(context), context.place(action)
        low, high, first, limit, lowest, top = self._bounds
        try:
            place: Any = action if self._places is None else self._places.get(action)
            fine = low <= reward <= high and first <= place < limit and lowest <= propensity <= top
        except (TypeError, ValueError):
            fine, place = False, None
        if not fine or type(place) is not self._action_type:  # `check` raises with the reason
            place = self._checked(context_alone(context), [action], [reward], [propensity]).actions[0]
        engine.append(context, place, reward, propensity, number)
        return self

    update = _core.in_one_call(update, "update")

    def _decided(self, given: object, action: object, reward: object) -> tuple[Any, Any, Any, Any, int]:
        """Return context, action, reward, propensity and number of a decision from the arguments of `update`."""
        if not isinstance(given, Decision | str) or (action is None) == (reward is None):
            raise InvalidInput(
                f"update: found {type(given).__name__} and {'no' if action is None and reward is None else 'a'} reward"
                " without a propensity, expected update(decision, reward)"
                " or update(context, action, reward, propensity)"
            )
        reward = action if reward is None else reward
        if isinstance(given, Decision):
            context = given.context
            if context is not None:  # from any learner, in any process
                return context, given.played, reward, given.propensity, given.number
        name = given.id if isinstance(given, Decision) else given
        number = decision_number_of(name)
        kept = None if self._engine is None else self._engine.pending.get(number)
        if kept is None:
            if self._engine is not None:
                self._engine.check_new(number)
            raise InvalidInput(
                f"update: found no decision {name!r} that waits for a reward, expected what `act` returned or its id;"
                f" the contexts of {PENDING:,} decisions are kept, for older ones call"
                " update(context, action, reward, propensity)"
            )
        return kept.context, kept.action, reward, kept.propensity, number

    # -- many at once

    def act_many(self, contexts: object) -> Decisions:
        """Draw an action for each of many contexts: the same decisions as one call of `act` each, at once.

        Parameters
        ----------
        contexts
            A matrix, a data frame, or a list of contexts as `act` takes them. For users with items, a list of pairs
            `(user, items)` or of `Offer`.

        Returns
        -------
        Decisions
            `actions`, `propensities` and `ids`, one per context. They wait for their rewards: `update_many(decisions,
            rewards)`, or `update(id, reward)` for one of them. The learner keeps the contexts of the last million.
        """
        engine = self._engine or self._begin(contexts)
        with engine.lock:
            rows = engine.encoder.encode(contexts)
            decisions = decide_many(engine.decider, contexts, rows, engine.stream.take(len(rows)))
            engine.pending.keep_many(decisions)
        return decisions

    def update_many(self, decisions: object, rewards: object) -> Self:
        """Learn from many decisions and their rewards: the same as one call of `update` each, in this order.

        Parameters
        ----------
        decisions
            What `act_many` returned, or a part of it; or ids of decisions, such as a column of a data frame.
        rewards
            One per decision. NaN: not known; such decisions go on waiting.
        """
        engine = self._begun()
        if isinstance(decisions, Decisions):
            append_many(engine, self._checked(decisions.rewarded(rewards)))
            return self
        numbers, told = check_decision_ids(decisions), check_column("reward", rewards, np.float64)
        check_lengths(ids=numbers, rewards=told)
        numbers, told = numbers[~np.isnan(told)], told[~np.isnan(told)]
        check_many_once(numbers)
        found = engine.pending.batch_of(numbers)
        if found is not None:
            return self.update_many(found, told)
        check_rewards(told, self._bounds[:2])
        rows = [self._decided(decision_id_of(number), None, told[row]) for row, number in enumerate(numbers.tolist())]
        for context, action, reward, propensity, number in rows:
            engine.append(context, self._places[action] if self._places else action, reward, propensity, number)
        return self

    def _update_list(self, given: object, actions: object, rewards: object, propensities: object) -> Self:
        """Update all slots of a list, or none if one is invalid."""
        told = self._listed(given, actions, rewards, propensities)
        for context, action, reward, propensity, number in told:  # each as returned by `_decided`
            self._checked(context_alone(context), [action], [reward], [propensity])
            if number is not None and self._engine is not None:
                self._engine.check_new(number)
        for context, action, reward, propensity, number in told:
            (self._engine or self._begin(context_alone(context))).append(context, action, reward, propensity, number)
        return self

    def _listed(self, given: Any, actions: Any, rewards: Any, propensities: Any) -> list[tuple[Any, ...]]:
        raise InvalidInput(f"update: found a list of actions, which {type(self).__name__} does not have")
