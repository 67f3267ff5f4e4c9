"""A model m(x, a) of the rewards for DM and DR, cross-fitted: a row's prediction never saw the row's own reward.

Ridge regression per action (one for all, on features of the action, where actions are numbers or sets), from sums that
one pass over the log collects per fold; the model for a fold is solved from the sums of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from o2pl.evaluation.targets import Target
from o2pl.interactions import Interactions
from o2pl.learners.member import LINEAR
from o2pl.protocols import Array, Floats, Ints, Seed, State
from o2pl.rows import ActionSets

_LARGEST = 2e7  # numbers that the sums of all folds and actions may take


class Predictions(NamedTuple):
    played: Floats  # m(x_s, a_s), [n]
    expected: Floats  # Σ_a π(a|x_s) m(x_s, a), [n]


@dataclass(frozen=True, eq=False)
class RewardModel:
    """Coefficients for each fold, from all rows outside it: [F, K, d]; K = 1 where the action is in the features."""

    log: Interactions
    folds: Ints  # of each row, [n]
    seen: State  # of the feature map
    coefficients: Floats
    means: Floats  # mean reward outside the fold, which an action never played is given, [F]
    lowest: float
    highest: float

    def played(self, rows: slice) -> Floats:
        """m(x_s, a_s), [m]"""
        X = _design(self.log, self.seen, rows, self.log.actions[rows])
        return self._predict(X, self.folds[rows], _group(self.log, rows))

    def all_actions(self, rows: slice) -> Floats:
        """m(x_s, ·), [m, K]; flat for action sets."""
        folds = self.folds[rows]
        if isinstance(self.log.contexts, ActionSets):
            sets = self.log.contexts[rows]
            return self._predict(
                _features(self.seen, sets.values), folds[sets.owner], np.zeros(len(sets.values), np.int64)
            )
        X = _features(self.seen, self.log.contexts[rows])
        out = np.empty((len(X), self.coefficients.shape[1]))
        for fold in range(len(self.coefficients)):
            mine = folds == fold
            out[mine] = X[mine] @ self.coefficients[fold].T + self.means[fold]
        return np.clip(out, self.lowest, self.highest)

    def expected(self, target: Target, rows: slice) -> Floats | None:
        """v(x_s), [m]; None for a policy of which only the logged actions' likelihoods are known."""
        nodes = target.nodes(rows)
        if nodes is not None:
            actions, shares = nodes
            X = [_design(self.log, self.seen, rows, actions[:, j]) for j in range(len(shares))]
            zeros = np.zeros(len(actions), np.int64)
            return np.asarray(
                sum(s * self._predict(x, self.folds[rows], zeros) for s, x in zip(shares, X, strict=True))
            )
        probabilities = target.all_actions(rows)
        if probabilities is None:
            return None
        if isinstance(self.log.contexts, ActionSets):
            products = probabilities * self.all_actions(rows)
            return np.asarray(np.add.reduceat(products, self.log.contexts[rows].offsets[:-1]))
        predicted = self.all_actions(rows)
        known = predicted.shape[1]  # an action that the log does not have is worth the mean
        rest = probabilities[:, known:].sum(axis=1) * self.means[self.folds[rows]]
        return np.asarray(np.einsum("nk,nk->n", probabilities[:, :known], predicted) + rest)

    def _predict(self, X: Floats, folds: Ints, groups: Ints) -> Floats:
        values = np.einsum("nd,nd->n", X, self.coefficients[folds, groups]) + self.means[folds]
        return np.asarray(np.clip(values, self.lowest, self.highest))


def fit_rewards(log: Interactions, *, folds: int = 5, ridge: float = 1.0, seed: Seed = 0) -> RewardModel:
    """Cross-fitted ridge models on standardised contexts and an intercept, of the rewards less their mean.

    Continuous actions enter as 1, a, a² times those features. Predictions are cut to the rewards' range (to those seen
    where the range is not known).
    """
    n = len(log)
    values = log.contexts.values if isinstance(log.contexts, ActionSets) else log.contexts
    seen = LINEAR.observe(LINEAR.init(values.shape[1]), values)
    groups = log.n_actions or 1
    width = _design(log, seen, slice(0, 1), log.actions[:1]).shape[1]
    if folds * groups * width**2 > _LARGEST:
        folds = 2
    place = np.resize(np.arange(folds, dtype=np.int8), n)
    np.random.default_rng(seed).shuffle(place)
    gram, cross = np.zeros((folds, groups, width, width)), np.zeros((folds, groups, width))
    features, totals, counts = np.zeros((folds, groups, width)), np.zeros(folds), np.zeros(folds)
    for rows in log.blocks():
        X, y = _design(log, seen, rows, log.actions[rows]), log.rewards[rows]
        cell = place[rows].astype(np.int64) * groups + _group(log, rows)
        order = np.argsort(cell, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(cell[order]) > 0])
        for one in np.split(order, starts[1:]):
            fold, group = divmod(int(cell[one[0]]), groups)
            mine = X[one]
            gram[fold, group] += mine.T @ mine
            cross[fold, group] += y[one] @ mine
            features[fold, group] += mine.sum(axis=0)
        totals += np.bincount(place[rows], y, folds)
        counts += np.bincount(place[rows], minlength=folds)
    others = np.maximum(counts.sum() - counts, 1)
    means = (totals.sum() - totals) / others  # [F]
    left = cross.sum(axis=0) - cross - means[:, None, None] * (features.sum(axis=0) - features)
    systems = gram.sum(axis=0) - gram + ridge * np.eye(width)
    coefficients = np.linalg.solve(systems, left[..., None])[..., 0]
    lowest, highest = log.reward_range or (float(log.rewards.min()), float(log.rewards.max()))
    return RewardModel(log, place, seen, coefficients, means, lowest, highest)


def predictions(log: Interactions, target: Target, model: RewardModel) -> Predictions | None:
    """Columns of m and v, block by block."""
    played, expected = np.empty(len(log)), np.empty(len(log))
    for rows in log.blocks():
        value = model.expected(target, rows)
        if value is None:
            return None
        expected[rows] = value
        played[rows] = model.played(rows)
    return Predictions(played, expected)


def _features(seen: State, values: Floats) -> Floats:
    return LINEAR.transform(seen, values).astype(np.float64)


def _design(log: Interactions, seen: State, rows: slice, actions: Array) -> Floats:
    """The regression's row for a context and an action. [m, d]"""
    if isinstance(log.contexts, ActionSets):
        sets = log.contexts[rows]
        return _features(seen, sets.values[sets.offsets[:-1] + actions])
    X = _features(seen, log.contexts[rows])
    if not log.continuous:
        return X
    centre, spread = log.action_scale
    z = ((actions - centre) / spread)[:, None]
    return np.concatenate([X, X * z, X * z**2], axis=1)


def _group(log: Interactions, rows: slice) -> Ints:
    return log.actions[rows] if log.n_actions else np.zeros(len(log.actions[rows]), np.int64)
