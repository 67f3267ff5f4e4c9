"""Cross-fitted reward models m(x, a) for DM and DR: no row is used for its own prediction.

One regression per action (one for all, on features of the action, if actions are numbers or sets): logistic if there
are only two rewards, ridge otherwise. Slopes are shrunk by an estimate of their size. For every action, the mean
prediction over the training rows is their mean reward (actions that were hardly ever rewarded are shrunk to the mean of
all): rare rewards stay rare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.regressions import (
    Link,
    SlopeEvidence,
    Sums,
    fit_regression_group,
    regression_pooled_means,
    regression_slope_evidence,
    regression_sums_outside,
)
from o2pl.features import Standardise
from o2pl.learners.targets import PolicyRows
from o2pl.protocols import Array, Floats, Ints, Seed, State

_SCALE = Standardise()
_FOLDS, _FEW = 5, 2
_MANY_ROWS = 100_000  # with more rows, two folds are enough
_LARGEST = 2e7  # limit of numbers in the sums of all folds and actions


@dataclass(frozen=True, eq=False)
class RewardModel:
    """The model link(level + x · slopes) of each fold, fitted outside it; K = 1 if the action is in the features."""

    log: Interactions
    folds: Ints  # fold of each row, [n]
    seen: State  # state of the standardisation
    slopes: Floats  # [F, K, d]
    levels: Floats  # [F, K]
    means: Floats  # mean reward outside the fold: prediction for unplayed actions, [F]
    link: Link

    def contexts(self, rows: Ints) -> Floats:
        """Return the standardised contexts, [m, d]."""
        return _reward_model_features(self.seen, self.log.contexts[rows])

    def played(self, rows: slice) -> Floats:
        """Return m(x_s, a_s), [m]."""
        X = _reward_model_design(self.log, self.seen, rows, self.log.actions[rows])
        return self._predict(X, self.folds[rows], _reward_model_group(self.log, rows))

    def all_actions(self, rows: slice) -> Floats:
        """Return m(x_s, ·), [m, K]; flat for action sets."""
        folds = self.folds[rows]
        if self.log.encoded.items is not None:
            sets = self.log.encoded[rows]
            X = _reward_model_features(self.seen, sets.items)
            return self._predict(X, folds[sets.owner], np.zeros(len(X), np.int64))
        X = _reward_model_features(self.seen, self.log.contexts[rows])
        scores = np.empty((len(X), self.levels.shape[1]))
        for fold in range(len(self.levels)):
            mine = folds == fold
            scores[mine] = X[mine] @ self.slopes[fold].T + self.levels[fold]
        return self.link.reward(scores)

    def table(self, rows: slice) -> tuple[Floats, Floats | None]:
        """Return m(x_s, a_s), [m], and m(x_s, ·) unless actions are real numbers."""
        if self.log.continuous:
            return self.played(rows), None
        table = self.all_actions(rows)
        return table[self.log.encoded[rows].places(self.log.actions[rows])], table

    def expected(self, does: PolicyRows, rows: slice, table: Floats | None) -> Floats | None:
        """Return v(x_s), [m], from m(x_s, ·); None if the policy is known only for the logged actions."""
        if does.nodes is not None:
            actions, shares = does.nodes
            zeros = np.zeros(len(actions), np.int64)
            designs = (_reward_model_design(self.log, self.seen, rows, actions[:, j]) for j in range(len(shares)))
            values = (self._predict(X, self.folds[rows], zeros) for X in designs)
            return np.asarray(sum(share * value for share, value in zip(shares, values, strict=True)))
        probabilities = does.probabilities
        if probabilities is None or table is None:
            return None
        if self.log.encoded.items is not None:
            return self.log.encoded[rows].sums(probabilities * table)
        known = table.shape[1]
        value = np.einsum("nk,nk->n", probabilities[:, :known], table)
        if probabilities.shape[1] > known:  # actions that are not in the log get the mean
            value += probabilities[:, known:].sum(axis=1) * self.means[self.folds[rows]]
        return np.asarray(value)

    def _predict(self, X: Floats, folds: Ints, groups: Ints) -> Floats:
        scores = np.einsum("nd,nd->n", X, self.slopes[folds, groups]) + self.levels[folds, groups]
        return self.link.reward(scores)


def fit_rewards(
    log: Interactions, *, folds: int | None = None, penalty: float | None = None, seed: Seed = 0
) -> RewardModel:
    """Fit a cross-fitted reward model on standardised contexts.

    `penalty` of the slopes: ½ penalty |slopes|² is added to the summed loss; None: estimated from the rows outside each
    fold. Continuous actions enter as 1, a, a² times the context. Predictions are clipped to the reward range (to the
    observed rewards if the range is unknown).
    """
    values = log.encoded.own
    seen = _SCALE.observe(_SCALE.init(values.shape[1]), values)
    groups = log.n_actions or 1
    width = _reward_model_design(log, seen, slice(0, 1), log.actions[:1]).shape[1]
    wide = _FOLDS * groups * width**2 > _LARGEST or len(log) > _MANY_ROWS
    count = (_FEW if wide else _FOLDS) if folds is None else folds
    place = np.tile(np.arange(count, dtype=np.int8), len(log) // count + 1)[: len(log)]
    np.random.default_rng(seed).shuffle(place)
    link = _reward_model_link(log)
    y, unit = link.targets(log.rewards), link.unit
    by_action = dict(_reward_rows_by_action(log))
    sums = {
        action: regression_sums_outside(_reward_model_design_of_rows(log, seen, rows), y[rows], place[rows], count)
        for action, rows in by_action.items()
    }
    total = log.rewards.sum() - np.bincount(place, log.rewards, count)
    means = total / np.maximum(len(log) - np.bincount(place, minlength=count), 1)
    penalties = (
        np.full(count, penalty) if penalty is not None else _reward_model_penalties(list(sums.values()), link.logistic)
    )
    slopes, levels = np.zeros((count, groups, width)), np.repeat(link.score(means)[:, None], groups, axis=1)
    for (action, rows), goal in zip(by_action.items(), regression_pooled_means(list(sums.values()), unit), strict=True):
        X = _reward_model_design_of_rows(log, seen, rows)
        levels[:, action], slopes[:, action] = fit_regression_group(
            X, y[rows], place[rows], sums[action], goal, penalties, unit
        )
    return RewardModel(log, place, seen, slopes, levels, means, link)


def _reward_model_link(log: Interactions) -> Link:
    low, high = float(log.rewards.min()), float(log.rewards.max())
    if low < high and bool(((log.rewards == low) | (log.rewards == high)).all()):
        return Link(True, low, high)
    return Link(False, *(log.reward_range or (low, high)))


def _reward_model_penalties(sums: list[Sums], logistic: bool) -> Floats:
    """Return the penalty of each fold, from all actions together. [F]"""
    if logistic:
        return _added_for_reward_model([regression_slope_evidence(one, one.variance, True) for one in sums]).penalty()
    count = np.sum([one.rows for one in sums], axis=0)
    noise = np.sum([one.rows * one.variance for one in sums], axis=0) / np.maximum(count, 1)
    return _added_for_reward_model([regression_slope_evidence(one, noise, False) for one in sums]).penalty(noise)


def _added_for_reward_model(parts: list[SlopeEvidence]) -> SlopeEvidence:
    return SlopeEvidence(np.sum([one.excess for one in parts], axis=0), np.sum([one.unit for one in parts], axis=0))


def _reward_rows_by_action(log: Interactions) -> Iterator[tuple[int, Ints]]:
    """Yield the rows of each played action; all rows if one model serves all actions."""
    if not log.n_actions:
        yield 0, np.arange(len(log))
        return
    order = np.argsort(log.actions, kind="stable")
    ends = np.cumsum(np.bincount(log.actions, minlength=log.n_actions))
    for action, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            yield action, rows


def _reward_model_features(seen: State, values: Floats) -> Floats:
    return _SCALE.transform(seen, values).astype(np.float64)


def _reward_model_design(log: Interactions, seen: State, rows: slice | Ints, actions: Array) -> Floats:
    """Return the regression features of contexts and actions, [m, d]."""
    if log.encoded.items is not None:
        sets = log.encoded[rows]
        return _reward_model_features(seen, sets.items[sets.places(actions)])
    X = _reward_model_features(seen, log.contexts[rows])
    if not log.continuous:
        return X
    centre, spread = log.action_scale
    z = ((actions - centre) / spread)[:, None]
    return np.concatenate([X, z, X * z, z**2, X * z**2], axis=1)


def _reward_model_design_of_rows(log: Interactions, seen: State, rows: Ints) -> Floats:
    if log.encoded.items is not None:  # one model for all actions
        return _reward_model_design(log, seen, slice(0, len(log)), log.actions)
    return _reward_model_design(log, seen, rows, log.actions[rows])


def _reward_model_group(log: Interactions, rows: slice) -> Ints:
    return log.actions[rows] if log.n_actions else np.zeros(len(log.actions[rows]), np.int64)
