"""Where a log supports a policy: which of its decisions the log hardly shows.

A row shows only the propensity q of its own action. Those of the other actions share 1 - q; how they share it is
estimated by a multinomial regression of the actions on the contexts, mixed with the most likely share of uniform
exploration:

    q̃(a|x_s) = min((1 - q_s) μ̂(a|x_s) / Σ_{b ≠ a_s} μ̂(b|x_s), 1 - q_s, c(a|x_s)),   q̃(a_s|x_s) = q_s

With two actions the first is exact. c bounds what the counts allow without any model: of the n_b rows whose column j is
in the same twentieth as x_j, N_ab played a, so the mean propensity there is hardly above (N_ab + 2 √N_ab + 3)/n_b. The
mean of 1/q_s is the mean number of actions that a row can show: if it is K without doubt, as in a log of uniform draws,
every action has at least the smallest propensity of the log. A decision for a is hardly shown where π(a|x)/q̃(a|x) >
3 α, with α the tenth largest weight in the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.multinomial import fit_action_wise_multinomial, fit_multinomial
from o2pl.protocols import Floats, Ints

_SLACK, _RANK = 3.0, 10
_SHARES = np.array([0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0])  # of uniform exploration
_LEAST = 1e-12
_NOWHERE = 0.01  # actions per context
_MOST_ROWS = 20_000  # of the regression
_BINS, _WIDE = 20, 64  # twentieths, of at most so many columns


def largest_supported_weight(weights: Floats, share: float = 1.0) -> float:
    """Return 3 α, α the tenth largest |w|, for short logs the n/20-th (at least the third); α ≥ 1.

    share: of all rows that are judged together; a part's rank is its share of the tenth.
    """
    n = len(weights)
    rank = int(np.clip(share * np.clip(n / share / 20, 0, _RANK), min(3, n), _RANK))
    sizes = np.abs(weights)
    return _SLACK * max(1.0, float(np.partition(sizes, n - rank)[n - rank]))


@dataclass(frozen=True, eq=False)
class Support:
    """The estimated propensities of all actions, as functions of contexts."""

    likely: Callable[[Any], Floats]  # μ̂(·|x), [m, K]; flat for action sets
    most: Callable[[Any], Floats] | None = None  # c(·|x), [m, K]
    least: float = 0.0  # propensity that every action has

    def propensities(self, log: Interactions, rows: slice) -> Floats:
        """Return q̃(·|x) in some rows of a log, [m, K]; flat for action sets."""
        contexts, q = log.encoded[rows], log.propensities[rows]
        found = self.likely(log.contexts[rows])
        at = contexts.places(log.actions[rows])
        scale = (1 - q) / np.maximum(1 - found[at], _LEAST)
        found = np.minimum(found * contexts.spread(scale), contexts.spread(1 - q))
        if self.most is not None:
            found = np.minimum(found, self.most(log.contexts[rows]))
        found = np.maximum(found, self.least)
        found[at] = q
        return np.asarray(found)


def support_of(log: Interactions) -> Support | None:
    """Return the support of a log of discrete actions with numeric contexts; None: nothing can be said."""
    if log.continuous or len(log) < 2:
        return None
    if log.encoded.items is not None:
        return Support(
            fit_action_wise_multinomial(log.contexts, log.actions),
            None,
            _supported_everywhere(log.propensities, log.contexts.sizes),
        )
    k = int(log.n_actions or 1)
    contexts: Floats = log.contexts
    some = slice(None, None, 1 + len(log) // _MOST_ROWS)
    fitted = fit_multinomial(contexts, log.actions, k)
    likely = fitted(contexts[some])
    share = _support_by_exploration(likely, log.actions[some], k)
    expected = ((1 - share) * likely + share / k).mean(axis=0)
    plays = np.bincount(log.actions, minlength=k)[:k]
    scale = np.where(plays < 3, 0.0, np.minimum(1.0, _most_supported(plays, len(log)) / np.maximum(expected, _LEAST)))
    return Support(
        _Likely(fitted, share, scale), _Counted.of(contexts, log.actions, k), _supported_everywhere(log.propensities, k)
    )


def _supported_everywhere(propensities: Floats, choices: int | Ints) -> float:
    """Return a propensity that every action has nearly everywhere; 0 if the log does not show one."""
    missing = choices - 1 / np.maximum(propensities, _LEAST)
    beyond = abs(float(missing.mean())) + 2 * float(missing.std()) / math.sqrt(len(missing))
    return float(propensities.min()) if beyond < _NOWHERE else 0.0


@dataclass(frozen=True, eq=False)
class _Likely:
    """(1 - ε) μ̂ + ε/K, scaled down for actions that were played less often than that says."""

    fitted: Callable[[Floats], Floats]
    share: float
    scale: Floats

    def __call__(self, contexts: Floats) -> Floats:
        return np.asarray(((1 - self.share) * self.fitted(contexts) + self.share / len(self.scale)) * self.scale)


def _support_by_exploration(likely: Floats, actions: Ints, k: int) -> float:
    """Return the share of uniform exploration under which the actions are most likely."""
    own = likely[np.arange(len(actions)), actions]
    values = [np.log(np.maximum((1 - share) * own + share / k, _LEAST)).sum() for share in _SHARES]
    return float(_SHARES[int(np.argmax(values))])


def _most_supported(plays: Ints, rows: int | Ints) -> Floats:
    return np.asarray((plays + 2 * np.sqrt(plays) + 3) / np.maximum(rows, 1))


@dataclass(frozen=True, eq=False)
class _Counted:
    """c: how often each action was played in every twentieth of every column, at most."""

    edges: list[Floats]  # of each column, strictly rising
    most: list[Floats]  # [bins, K] of each column

    @classmethod
    def of(cls, contexts: Floats, actions: Ints, k: int) -> _Counted:
        edges, most = [], []
        for j in range(min(contexts.shape[1], _WIDE)):
            column = contexts[:, j]
            some = column[:: 1 + len(column) // _MOST_ROWS]
            edge = np.unique(np.quantile(some, np.linspace(0, 1, _BINS + 1)[1:-1]))
            place = np.searchsorted(edge, column)
            plays = np.bincount(place * k + actions, minlength=(len(edge) + 1) * k).reshape(-1, k)
            edges.append(edge)
            most.append(_most_supported(plays, plays.sum(axis=1, keepdims=True)))
        return cls(edges, most)

    def __call__(self, contexts: Floats) -> Floats:
        found = np.ones((len(contexts), self.most[0].shape[1] if self.most else 1))
        for j, (edge, most) in enumerate(zip(self.edges, self.most, strict=True)):
            np.minimum(found, most[np.searchsorted(edge, contexts[:, j])], out=found)
        return found
