"""Target policies of off-policy evaluation: their probabilities in the rows of a log, from any kind of argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from o2pl.data.action_names import (
    Names,
    are_action_names,
    check_action_names,
    numbers_of_action_names,
    places_of_action_names,
)
from o2pl.data.interactions import Interactions
from o2pl.data.records import records_by_name
from o2pl.errors import InvalidInput, nearest
from o2pl.protocols import Floats
from o2pl.validation import check_actions

_ROUNDING = 1e-6  # tolerance of the sum of probabilities


class PolicyRows(NamedTuple):
    """The probabilities of a policy in some rows."""

    played: Floats  # π(a_s|x_s), [m]
    probabilities: Floats | None  # π(·|x_s), [m, K]; flat for action sets; None: unknown
    nodes: tuple[Floats, Floats] | None = None  # continuous: quadrature nodes [m, J] and weights [J]


class Target(Protocol):
    """A policy evaluated on a log: returns `PolicyRows` for a slice of its rows."""

    @property
    def name(self) -> str: ...
    def on(self, rows: slice) -> PolicyRows: ...


@dataclass(frozen=True)
class _Discrete:
    """A target given by a function from rows to π(·|x)."""

    name: str
    log: Interactions
    probabilities: Callable[[slice], Floats]

    def on(self, rows: slice) -> PolicyRows:
        probabilities, actions = self.probabilities(rows), self.log.actions[rows]
        return PolicyRows(probabilities[self.log.encoded[rows].places(actions)], probabilities)


@dataclass(frozen=True)
class _PlayedOnly:
    """A target with probabilities of the logged actions only, [n]: enough for weights, not for a reward model."""

    name: str
    likelihoods: Floats

    def on(self, rows: slice) -> PolicyRows:
        return PolicyRows(self.likelihoods[rows], None)


@dataclass(frozen=True)
class _Density:
    """A target given by a learner of real-valued actions. Integrals are exact for models quadratic in the action."""

    name: str
    log: Interactions
    learner: Any
    contexts: Any  # raw contexts, for the learner

    def on(self, rows: slice) -> PolicyRows:
        places, shares = self.learner.nodes(self.contexts[rows])
        played = np.asarray(self.learner.predict_density(self.contexts[rows], self.log.actions[rows]))
        return PolicyRows(played, None, (places, shares))


def as_target(policy: Any, log: Interactions, name: str = "policy", contexts: Any = None) -> Target:
    """Return the target of a policy argument.

    policy: a learner, or any object with `predict_proba`; "uniform" or "logged"; the name of an action that is always
    taken; π(·|x) as an array [n, K] or as a function of contexts, which may also return actions, [n]; or π(a|x) as an
    array [n]. contexts: raw contexts for the policy, if the log's contexts are encoded.
    """
    given_contexts = log.contexts if contexts is None else contexts
    if isinstance(policy, str):
        return _target_by_name(policy, log, name)
    if getattr(policy, "continuous", hasattr(policy, "predict_density")):  # set by a Decider
        _require_target(bool(log.continuous), "continuous actions", log, name)
        return _Density(name, log, policy, given_contexts)
    if hasattr(policy, "predict_proba"):
        known = target_names(policy)
        _check_named_target(name, known, log)
        return _Discrete(
            name,
            log,
            lambda rows: _checked_target(
                _target_in_order(policy.predict_proba(given_contexts[rows]), known, log), log, rows, name
            ),
        )
    if callable(policy):
        return _Discrete(
            name,
            log,
            lambda rows: _checked_target(
                _target_of_function(policy(records_by_name(given_contexts[rows])), log, rows, name), log, rows, name
            ),
        )
    try:
        given = np.asarray(policy, np.float64)
        if not given.ndim:
            raise TypeError
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{name}: found a {type(policy).__name__}, expected a learner, 'uniform', 'logged', probabilities or a"
            " function of contexts"
        ) from None
    if given.shape == (len(log),):
        return _PlayedOnly(name, _check_target_likelihoods(given, bool(log.continuous), name))
    if given.ndim == 2 and len(given) == len(log) and not log.continuous:
        return _Discrete(name, log, lambda rows: _checked_target(given[rows], log, rows, name))
    expected = "one probability per row, or per row and action"
    raise InvalidInput(f"{name}: found shape {given.shape} for a log of {len(log)} rows, expected {expected}")


def table_target(name: str, log: Interactions, table: Floats) -> Target:
    """Return the target of π(·|x) in the rows of the log, [n, K]; flat for action sets."""
    return _Discrete(name, log, lambda rows: _checked_target(log.encoded.part(table, rows), log, rows, name))


# -- action names


def target_names(policy: object) -> Names:
    """Return the names of a policy's actions, in the order of its probabilities; empty if they have none."""
    if isinstance(policy, str) or not hasattr(policy, "predict_proba"):
        return ()
    if getattr(policy, "_engine", True) is None:
        return ()  # a learner without data raises its own error later
    names = getattr(policy, "actions_", ())
    classes = getattr(policy, "classes_", None)  # a scikit-learn classifier
    return (
        check_action_names(classes) if not names and classes is not None and are_action_names(classes) else tuple(names)
    )


def with_target_names(log: Interactions, *policies: object) -> Interactions:
    """Return the log with the names of actions that only the policies know appended."""
    if not log.action_names or log.encoded.items is not None:
        return log
    known = [*log.action_names, *(name for policy in policies for name in target_names(policy))]
    names = tuple(dict.fromkeys(known))
    return log if names == log.action_names else log.changed(action_names=names)


def _check_named_target(which: str, names: Names, log: Interactions) -> None:
    """Reject a policy with action names and a log without, or vice versa: indices may have different meanings."""
    if log.encoded.items is not None or log.continuous:
        return
    theirs = log.action_names if len(log.action_names) >= (log.n_actions or 0) else ()
    if bool(names) == bool(theirs):
        return
    said = [", ".join(repr(name) for name in some[:5]) for some in (names, theirs)]
    if names:
        raise InvalidInput(
            f"log: found actions that are numbers, expected names, as in the {which}: {said[0]}."
            " Name them with Interactions(..., action_names=[...])"
        )
    raise InvalidInput(
        f"{which}: found a policy whose actions are numbers, expected names, as in the log: {said[1]}."
        " Learn from named actions, or pass `actions=[...]` to the learner"
    )


def _target_in_order(probabilities: object, names: Names, log: Interactions) -> Any:
    """Reorder columns to the log's names; 0 for actions that the policy does not know."""
    if not names or names == log.action_names:
        return probabilities
    places = places_of_action_names(log.action_names, names)
    return np.where(places >= 0, np.asarray(probabilities)[:, places], 0.0)


def _target_of_function(given: Any, log: Interactions, rows: slice, name: str) -> Floats:
    """Return the probabilities that a function returned; if it returned actions, these get probability 1.

    Actions are names or integers, one per row. Probabilities are a row per context, one for each action; for action
    sets also one for each action of all sets.
    """
    played = log.actions[rows]
    sets = log.encoded[rows] if log.encoded.items is not None else None
    K = log.n_actions if sets is None else "its"
    expected = f"for each of {len(played)} rows an action, or the probabilities of {K} actions"
    if not hasattr(given, "__len__") or isinstance(given, str | dict):
        raise InvalidInput(f"{name}: found {given!r}, expected {expected}")
    listed = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.dtype.hasobject)
    if listed and len(given) == len(played) and np.ndim(given[0]) == 1:
        sizes = [log.n_actions] * len(played) if sets is None else sets.sizes.tolist()
        for row, (one, size) in enumerate(zip(given, sizes, strict=True)):
            if np.shape(one) != (size,):
                said = f"{len(one)} probabilities" if np.ndim(one) == 1 else repr(one)
                raise InvalidInput(f"{name}, row {rows.start + row}: found {said}, expected {size}: one per action")
        given = np.concatenate(given) if sets is not None else np.array(given)
    try:
        found = np.asarray(given)
    except ValueError:
        raise InvalidInput(f"{name}: found lists of different lengths, expected {expected}") from None
    if found.ndim == 1 and (are_action_names(found) or found.dtype.kind in "iu"):
        return _certain_target(found, log, rows, name, expected)
    if found.dtype.kind not in "biuf":
        raise InvalidInput(f"{name}: found {given[0]!r} in the first row, expected {expected}")
    if sets is None and found.ndim == 2 and found.shape[1] != log.n_actions:
        raise InvalidInput(
            f"{name}: found {found.shape[1]} probabilities per row, expected {log.n_actions}: one for every action of"
            " the log; if it never shows some actions, pass n_actions=... or action_names=[...] to Interactions"
        )
    return found


def _certain_target(actions: Any, log: Interactions, rows: slice, name: str, expected: str) -> Floats:
    """Return probability 1 for these actions, one per row."""
    n, sets = len(log.actions[rows]), log.encoded[rows]
    if len(actions) != n:
        raise InvalidInput(f"{name}: found {len(actions)} actions, expected {expected}")
    if are_action_names(actions):
        if not log.action_names:
            raise InvalidInput(f"{name}: found the action {str(actions[0])!r}, expected numbers, as in the log")
        numbers = numbers_of_action_names(actions, log.action_names)
    else:
        numbers = check_actions(actions, log.n_actions if sets.items is None else sets.sizes, f"{name}, action")
    table = np.zeros((n, int(log.n_actions or 0)) if sets.items is None else len(sets.items))
    table[sets.places(numbers)] = 1
    return table


def _target_by_name(policy: str, log: Interactions, name: str) -> Target:
    if policy == "logged":
        return _PlayedOnly("logged", log.propensities)
    if policy in log.action_names:
        always, count = log.action_names.index(policy), int(log.n_actions or 1)
        return _Discrete(
            policy,
            log,
            lambda rows: np.tile(np.arange(count) == always, (len(log.actions[rows]), 1)).astype(np.float64),
        )
    if policy != "uniform":
        raise InvalidInput(
            f"{name}: found {policy!r}, {nearest(policy, ['uniform', 'logged', *log.action_names])}, or a policy"
        )
    if log.continuous:
        raise InvalidInput(
            f"{name}: found 'uniform' with continuous actions, expected 'logged' or a policy with a density"
        )
    sets = log.encoded
    if sets.items is not None:
        return _Discrete("uniform", log, lambda rows: np.repeat(1 / sets[rows].sizes, sets[rows].sizes))
    actions = int(log.n_actions or 1)
    return _Discrete("uniform", log, lambda rows: np.full((len(log.actions[rows]), actions), 1 / actions))


def _require_target(fine: bool, what: str, log: Interactions, name: str) -> None:
    if not fine:
        raise InvalidInput(f"{name}: found a policy for {what}, expected one for {log.n_actions or 'sets of'} actions")


def _checked_target(probabilities: object, log: Interactions, rows: slice, name: str) -> Floats:
    """Check probabilities of all actions in a block of rows: they sum to 1 and cover the log's actions."""
    given = np.asarray(probabilities, np.float64)
    _require_target(not log.continuous, "discrete actions", log, name)
    if log.encoded.items is not None:
        sets = log.encoded[rows]
        if given.shape != (len(sets.items),):
            raise InvalidInput(
                f"{name}: found shape {given.shape}, expected one probability for each of {len(sets.items)} actions"
            )
        totals = sets.sums(given)
    else:
        if given.ndim != 2 or len(given) != len(log.actions[rows]) or given.shape[1] < (log.n_actions or 0):
            raise InvalidInput(
                f"{name}: found shape {given.shape}, expected {(len(log.actions[rows]), log.n_actions)}:"
                " one for every action of the log"
            )
        totals = given.sum(axis=1)
    wrong = ~(np.abs(totals - 1) <= _ROUNDING * max(1, given.shape[-1]))
    if wrong.any() or not (given >= 0).all():
        negative = log.encoded[rows].sums((given < 0.0) * 1.0) if given.ndim == 1 else (given < 0.0).sum(axis=1)
        row = int(np.argmax(wrong)) if wrong.any() else int(np.argmax(negative > 0))
        found = "a negative probability" if negative[row] else f"probabilities that sum to {totals[row]:g}"
        raise InvalidInput(f"{name}, row {rows.start + row}: found {found}, expected numbers from 0 to 1 that sum to 1")
    return given


def _check_target_likelihoods(given: Floats, density: bool, name: str) -> Floats:
    fine = (given >= 0) & (np.isfinite(given) if density else given <= 1 + _ROUNDING)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InvalidInput(
            f"{name}, row {row}: found {given[row]}, expected a {'density' if density else 'probability'}"
        )
    return given
