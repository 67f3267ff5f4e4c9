"""The policy to be judged, however it is given: what it would have done in the rows of a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.interactions import Interactions
from o2pl.learners.base import BanditEstimator
from o2pl.learners.gaussian import GaussianO2PL
from o2pl.protocols import Floats
from o2pl.rows import ActionSets

_ROUNDING = 1e-6  # probabilities may miss a sum of 1 by this


class Target(Protocol):
    """Of some rows of the log it was made for."""

    @property
    def name(self) -> str: ...
    def played(self, rows: slice) -> Floats: ...  # π(a_s|x_s), [m]
    def all_actions(self, rows: slice) -> Floats | None: ...  # π(·|x_s), [m, K]; flat for action sets; or not known
    def nodes(self, rows: slice) -> tuple[Floats, Floats] | None: ...  # continuous: actions [m, J] and shares [J]


@dataclass(frozen=True)
class _Discrete:
    """From a function of rows to π(·|x)."""

    name: str
    log: Interactions
    probabilities: Callable[[slice], Floats]

    def all_actions(self, rows: slice) -> Floats:
        return self.probabilities(rows)

    def played(self, rows: slice) -> Floats:
        probabilities, actions = self.probabilities(rows), self.log.actions[rows]
        if isinstance(self.log.contexts, ActionSets):
            return np.asarray(probabilities[self.log.contexts[rows].offsets[:-1] + actions])
        return np.asarray(probabilities[np.arange(len(actions)), actions])

    def nodes(self, rows: slice) -> None:
        return None


@dataclass(frozen=True)
class _PlayedOnly:
    """Only the likelihood of the logged actions is known, [n]: enough for weights, not for a reward model."""

    name: str
    likelihoods: Floats

    def played(self, rows: slice) -> Floats:
        return self.likelihoods[rows]

    def all_actions(self, rows: slice) -> None:
        return None

    def nodes(self, rows: slice) -> None:
        return None


@dataclass(frozen=True)
class _Gaussian:
    """Integrals of a polynomial of degree ≤ 9 in the action are exact with five Gauss-Hermite nodes."""

    name: str
    log: Interactions
    learner: GaussianO2PL
    contexts: Any  # as the learner reads them

    def played(self, rows: slice) -> Floats:
        return self.learner.predict_density(self.contexts[rows], self.log.actions[rows])

    def all_actions(self, rows: slice) -> None:
        return None

    def nodes(self, rows: slice) -> tuple[Floats, Floats]:
        places, shares = np.polynomial.hermite_e.hermegauss(5)
        means = self.learner.predict(self.contexts[rows])
        return means[:, None] + self.learner.scale_ * places, shares / shares.sum()


def as_target(policy: Any, log: Interactions, name: str = "policy", contexts: Any = None) -> Target:
    """A learner; "uniform" or "logged"; π(·|x) as an array [n, K] or a function of contexts; π(a|x) as an array [n].

    `contexts`: as policies read them, where the log's own are numbers that were made of them.
    """
    given_contexts = log.contexts if contexts is None else contexts
    if isinstance(policy, str):
        return _by_name(policy, log)
    if isinstance(policy, GaussianO2PL):
        _require(bool(log.continuous), "continuous actions", log)
        return _Gaussian(name, log, policy, given_contexts)
    if isinstance(policy, BanditEstimator):
        learner: Any = policy  # of discrete actions, as all but the Gaussian
        return _Discrete(name, log, lambda rows: _checked(learner.predict_proba(given_contexts[rows]), log, rows))
    if callable(policy):
        return _Discrete(name, log, lambda rows: _checked(policy(given_contexts[rows]), log, rows))
    given = np.asarray(policy, np.float64)
    if given.shape == (len(log),):
        return _PlayedOnly(name, _check_likelihoods(given, bool(log.continuous)))
    if given.ndim == 2 and len(given) == len(log) and not log.continuous:
        return _Discrete(name, log, lambda rows: _checked(given[rows], log, rows))
    expected = "one probability per row, or per row and action"
    raise InvalidInput(f"{name}: found shape {given.shape} for a log of {len(log)} rows, expected {expected}")


def _by_name(policy: str, log: Interactions) -> Target:
    if policy == "logged":
        return _PlayedOnly("logged", log.propensities)
    if policy != "uniform":
        raise InvalidInput(f"policy: found {policy!r}, expected 'uniform', 'logged' or a policy")
    if log.continuous:
        raise InvalidInput(
            "policy: found 'uniform' with continuous actions, expected 'logged' or a policy with a density"
        )
    if isinstance(log.contexts, ActionSets):
        sets = log.contexts
        return _Discrete("uniform", log, lambda rows: np.repeat(1 / sets[rows].sizes, sets[rows].sizes))
    actions = int(log.n_actions or 1)
    return _Discrete("uniform", log, lambda rows: np.full((len(log.actions[rows]), actions), 1 / actions))


def _require(fine: bool, what: str, log: Interactions) -> None:
    if not fine:
        raise InvalidInput(f"policy: found one for {what}, expected one for {log.n_actions or 'sets of'} actions")


def _checked(probabilities: Any, log: Interactions, rows: slice) -> Floats:
    """Probabilities of all actions in a block of rows; they sum to 1 and cover the log's actions."""
    given = np.asarray(probabilities, np.float64)
    _require(not log.continuous, "discrete actions", log)
    if isinstance(log.contexts, ActionSets):
        sets = log.contexts[rows]
        if given.shape != (len(sets.values),):
            raise InvalidInput(
                f"policy: found shape {given.shape}, expected one probability for each of {len(sets.values)} actions"
            )
        totals = np.add.reduceat(given, sets.offsets[:-1])
    else:
        if given.ndim != 2 or len(given) != len(log.actions[rows]) or given.shape[1] < (log.n_actions or 0):
            raise InvalidInput(
                f"policy: found shape {given.shape}, expected {(len(log.actions[rows]), log.n_actions)}:"
                " one for every action that the log shows"
            )
        totals = given.sum(axis=1)
    wrong = ~(np.abs(totals - 1) <= _ROUNDING * max(1, given.shape[-1]))
    if wrong.any() or not (given >= 0).all():
        row = int(np.argmax(wrong)) if wrong.any() else int(np.argmax((given < 0).reshape(len(given), -1).any(axis=1)))
        raise InvalidInput(
            f"policy, row {rows.start + row}: found probabilities that sum to {totals[row]:g}"
            " (or a negative one), expected numbers from 0 to 1 that sum to 1"
        )
    return given


def _check_likelihoods(given: Floats, density: bool) -> Floats:
    fine = (given >= 0) & (np.isfinite(given) if density else given <= 1 + _ROUNDING)
    if not fine.all():
        row = int(np.argmin(fine))
        raise InvalidInput(
            f"policy, row {row}: found {given[row]}, expected a {'density' if density else 'probability'}"
        )
    return given
