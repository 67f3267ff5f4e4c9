"""A learner for coba: `params`, `score`, `predict` and `learn`.

    from o2pl.adapters.coba import CobaLearner
    coba.Experiment(environments, [CobaLearner(), CobaLearner("O2PL", penalty=0.3)]).run()

Contexts may be missing, numbers, strings, rows of both, or dictionaries. Actions that are strings, numbers or one-hot
rows are names: the same ones in every round. Actions with features become action sets, and may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.learners import O2PL, Bandit

_LEARNERS: dict[str, Any] = {"Bandit": Bandit, "O2PL": O2PL}


class CobaLearner:
    """A coba learner. `learner`: "Bandit" or "O2PL"; `settings`: its settings, without `n_actions`.

    A `policy` in the settings is kept. coba's rewards may be any numbers. For `O2PL`, pass `reward_range` if they are
    not between 0 and 1. Rewards outside a given range are clipped: coba's synthetic environments slightly exceed 1.
    """

    def __init__(self, learner: str = "Bandit", **settings: Any) -> None:
        if learner not in _LEARNERS:
            raise InvalidInput(f"learner: found {learner!r}, expected one of {', '.join(_LEARNERS)}")
        _LEARNERS[learner](**settings)  # raises if settings are invalid
        self._name, self._settings = learner, settings
        self._learner: Any = None
        self._sets = False
        self._numbers: dict[Any, int] = {}  # indices of named actions

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that coba shows."""
        return {"family": f"o2pl.{self._name}", **self._settings}

    def predict(self, context: object, actions: Sequence[object]) -> tuple[Any, float, dict[str, Any]]:
        """Return an action, its probability, and keyword arguments for `learn`."""
        page, numbers = self._page(context, actions)
        decision = self._learner.act(page)
        place = numbers.index(decision.action)
        return actions[place], float(decision.propensity), {"page": page, "number": decision.action}

    def score(self, context: object, actions: Sequence[object], action: object) -> float:
        """Return the probability of an action."""
        page, numbers = self._page(context, actions)
        probabilities = self._learner.predict_proba([page]).reshape(-1)
        return float(probabilities[numbers[list(actions).index(action)]])

    def learn(
        self,
        context: object,
        action: object,
        reward: float,
        probability: float | None,
        page: object = None,
        number: object = None,
    ) -> None:
        """Learn from a decision, ours or a logger's, with its probability."""
        if probability is None:
            raise InvalidInput("probability: found None, expected the action's probability: it must be in the log")
        if page is None:  # a logged decision: its other actions are unknown
            if self._learner is None:
                raise InvalidInput("learn: found a logged action before any set of actions, expected `predict` first")
            page, (number,) = self._page(context, [action])
        earned, ends = float(reward), self._learner.reward_range
        earned = earned if ends is None else min(max(earned, ends[0]), ends[1])
        self._learner.update(page, number, earned, float(probability))

    def _page(self, context: object, actions: Sequence[object]) -> tuple[Any, list[int]]:
        """Return the context for the learner, and its index of each action."""
        for given in (context, actions):
            if getattr(given, "is_batch", False):
                raise InvalidInput("context: found a batch, expected one context")  # coba then calls one by one
        if self._learner is None:
            self._begin(context, actions)
        if self._sets:
            items = [_coba_dictionary(_coba_features(action)) for action in actions]
            return {"shared": _coba_dictionary(_coba_features(context)), "actions": items}, list(range(len(items)))
        page = _coba_dictionary(_coba_features(context)) if self._hashed else _coba_features(context)
        numbers = [self._numbers.get(_coba_name(action), -1) for action in actions]
        if min(numbers) < 0:
            raise InvalidInput(
                f"actions: found {actions[numbers.index(-1)]!r}, which was not in the first round;"
                ' expected the same ones each time, or actions with features (policy="hashed actionwise")'
            )
        return page, numbers

    def _begin(self, context: object, actions: Sequence[object]) -> None:
        """Choose the policy by the first context and actions."""
        policy = self._settings.get("policy")
        self._sets = (
            "actionwise" in policy if isinstance(policy, str) else not all(_is_coba_name(each) for each in actions)
        )
        words = not _coba_numbers(_coba_features(context))
        if policy is None:
            policy = "hashed actionwise" if self._sets else "hashed" if words else "union"
        self._hashed = isinstance(policy, str) and policy.startswith("hashed")
        known = {} if self._sets else {"n_actions": len(actions)}
        self._numbers = {} if self._sets else {_coba_name(action): number for number, action in enumerate(actions)}
        self._learner = _LEARNERS[self._name](**{**self._settings, "policy": policy, **known})


def _coba_features(given: Any) -> Any:
    """Return the features of a context or an action: a list of numbers, or a dictionary if there are strings."""
    if given is None:
        return [0.0]
    if isinstance(given, Mapping) or hasattr(given, "keys"):
        return {str(key): given[key] for key in given.keys()}  # noqa: SIM118  # coba's sparse rows are no mappings
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        given = [given]
    values = list(given)
    return values if _coba_numbers(values) else _coba_dictionary(values)


def _coba_dictionary(features: Any) -> dict[str, Any]:
    return features if isinstance(features, dict) else {f"x{place}": value for place, value in enumerate(features)}


def _coba_numbers(values: Any) -> bool:
    return not isinstance(values, dict) and all(isinstance(v, int | float) for v in values)


def _is_coba_name(action: Any) -> bool:
    """Return whether an action is a name: a string, a number, or a one-hot row (coba's classes)."""
    if isinstance(action, str | int | float):
        return True
    if isinstance(action, Mapping) or hasattr(action, "keys"):
        return False
    values = list(action)
    return _coba_numbers(values) and sum(values) == 1 and set(values) <= {0, 1}


def _coba_name(action: Any) -> str | int | float | tuple[Any, ...]:
    return action if isinstance(action, str | int | float) else tuple(action)
