"""Regressions for reward models: one action, all folds together, shrunk to the action's mean and calibrated.

The model of a fold is fitted to the rows outside it. Its slopes are shrunk, so that it falls back to the action's mean
if the rows have little information. Its mean prediction is the mean reward of the rows it was fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from o2pl.protocols import Floats, Ints
from o2pl.special import expit

_STEPS = 25
_MOST = 50_000  # approximate limit of rows for the slopes of a logistic model
_OFTEN = 20  # rewards of each kind (of two; else rewards) from which an action's own mean is used
_CLOSE = 1e-10  # tolerance of the intercept's gradient, in rewards per row


@dataclass(frozen=True)
class Link:
    """Maps a linear score to a reward: logistic between two rewards, or the score clipped to a range."""

    logistic: bool
    lowest: float
    highest: float

    @property
    def unit(self) -> Link:
        """The link in the unit of `targets`."""
        return Link(True, 0.0, 1.0) if self.logistic else self

    def targets(self, rewards: Floats) -> Floats:
        """Return the regression targets: 0 or 1 for two rewards, else the rewards."""
        return (rewards - self.lowest) / (self.highest - self.lowest) if self.logistic else rewards

    def reward(self, scores: Floats) -> Floats:
        if self.logistic:
            return np.asarray(self.lowest + (self.highest - self.lowest) * expit(scores))
        return np.asarray(np.clip(scores, self.lowest, self.highest))

    def score(self, rewards: Floats) -> Floats:
        """Return the score of a constant reward; ±∞ at the ends of the logistic link."""
        if not self.logistic:
            return np.asarray(rewards, np.float64)
        share = self.targets(np.asarray(rewards, np.float64))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(share) - np.log1p(-share))

    def slope(self, scores: Floats) -> Floats:
        """Return the derivative of the reward by the score."""
        if not self.logistic:
            return ((scores > self.lowest) & (scores < self.highest)).astype(np.float64)
        share = self.unit.reward(scores)
        return np.asarray((self.highest - self.lowest) * share * (1 - share))


class Sums(NamedTuple):
    """Sums over the rows outside each of F folds."""

    rows: Floats  # number of rows, [F]
    reward: Floats  # Σ y, [F]
    square: Floats  # Σ y², [F]
    centre: Floats  # mean x, [F, d]
    gram: Floats  # Σ (x - centre)(x - centre)ᵀ, [F, d, d]
    cross: Floats  # Σ (x - centre) y, [F, d]

    @property
    def mean(self) -> Floats:
        return np.asarray(self.reward / np.maximum(self.rows, 1))

    @property
    def variance(self) -> Floats:
        """The variance of the rewards."""
        return np.maximum(self.square / np.maximum(self.rows, 1) - self.mean**2, 0.0)


def regression_sums_outside(X: Floats, y: Floats, folds: Ints, n_folds: int) -> Sums:
    """Return the sums over the rows outside each fold. X [m, d], y [m], folds [m]"""
    width = X.shape[1]
    count, reward, square = (np.bincount(folds, w, n_folds) for w in (None, y, y**2))
    total, gram, cross = np.zeros((n_folds, width)), np.zeros((n_folds, width, width)), np.zeros((n_folds, width))
    for fold in range(n_folds):
        mine = X[folds == fold]
        total[fold], gram[fold], cross[fold] = mine.sum(axis=0), mine.T @ mine, y[folds == fold] @ mine
    count, reward, square, total, gram, cross = (
        column.sum(axis=0) - column for column in (count.astype(np.float64), reward, square, total, gram, cross)
    )
    centre = total / np.maximum(count, 1)[:, None]
    gram -= total[:, :, None] * centre[:, None, :]
    return Sums(count, reward, square, centre, gram, cross - reward[:, None] * centre)


class SlopeEvidence(NamedTuple):
    """Variation of the rewards with the context, beyond noise; additive over actions. [F]"""

    excess: Floats  # |Σ (x - centre) y|² minus its expectation under noise
    unit: Floats  # contribution of slopes of variance 1

    def penalty(self, noise: Floats | float = 1.0) -> Floats:
        """Return noise/τ² for linear scores, 1/τ² for logistic ones; ∞ if slopes are not distinguishable from 0. [F]

        Slopes with variance τ² each give E|g|² = Σ noise tr G + τ² tr G² for the scores g of the slopes at 0.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.excess > 0, noise * self.unit / self.excess, np.inf)


def regression_slope_evidence(sums: Sums, noise: Floats, logistic: bool) -> SlopeEvidence:
    """Return the evidence for slopes. noise: variance of a reward given the action, [F]."""
    trace = np.einsum("fii->f", sums.gram)
    squared = np.einsum("fij,fij->f", sums.gram, sums.gram)
    excess = np.einsum("fi,fi->f", sums.cross, sums.cross) - noise * trace
    return SlopeEvidence(excess, (noise**2 if logistic else 1.0) * squared)


class Fitted(NamedTuple):
    """A fitted model: score = level + x · slopes."""

    levels: Floats  # [F]
    slopes: Floats  # [F, d]


def regression_pooled_means(sums: list[Sums], link: Link) -> Floats:
    """Return the mean that each action's model is calibrated to, [K, F]: its own if it was observed often enough.

    For the others it is (Σ y + κ ȳ) / (count + κ), with ȳ the mean of all actions and κ = noise / variance of the
    actions' means (one-way analysis of variance, by moments). A rate from a handful of rows would add more noise to DR
    than its model removes.
    """
    count, reward, square = (np.stack([getattr(one, name) for one in sums]) for name in ("rows", "reward", "square"))
    own = np.stack([one.mean for one in sums])
    total = np.maximum(count.sum(axis=0), 1)
    everyone = reward.sum(axis=0) / total
    seen = np.maximum((count > 0).sum(axis=0), 1)
    noise = np.maximum((square - count * own**2).sum(axis=0), 0) / np.maximum(total - seen, 1)
    between = (count * (own - everyone) ** 2).sum(axis=0) - (seen - 1) * noise
    room = np.maximum(total - (count**2).sum(axis=0) / total, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.where(between > 0, noise * room / between, np.inf)  # κ
        share = np.where(np.isfinite(rows), count / (count + rows), 0.0)
    rarer = np.minimum(reward, count - reward) if link.logistic else count
    return np.where(rarer >= _OFTEN, own, everyone + share * (own - everyone))


def fit_regression_group(
    X: Floats, y: Floats, folds: Ints, sums: Sums, means: Floats, penalties: Floats, link: Link
) -> Fitted:
    """Fit all folds of one action, each calibrated to `means`, [F]; y and `link` are in the same unit.

    If rewards never vary, or the penalty is ∞, only the mean is used.
    """
    levels, slopes = link.score(means), np.zeros((len(means), X.shape[1]))
    for fold in range(len(means)):
        if not (np.isfinite(penalties[fold]) and sums.variance[fold] > 0 and sums.rows[fold] > 1):
            continue
        rows, penalty = X[folds != fold], float(penalties[fold])
        if link.logistic:
            some = slice(None, None, 1 + len(rows) // _MOST)
            slopes[fold] = _logistic_regression(rows[some] - sums.centre[fold], y[folds != fold][some], penalty)
        else:  # ridge with a free intercept
            slopes[fold] = _solved_regression(sums.gram[fold] + penalty * np.eye(X.shape[1]), sums.cross[fold])
        levels[fold] = regression_level(rows @ slopes[fold], float(means[fold]), link)
    return Fitted(levels, slopes)


def _solved_regression(gram: Floats, cross: Floats) -> Floats:
    """Return the solution, the smallest one if there are several: of features that never vary, without a penalty."""
    try:
        return np.asarray(np.linalg.solve(gram, cross))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(gram, cross, rcond=None)[0])


def _logistic_regression(rows: Floats, shares: Floats, penalty: float) -> Floats:
    """Return slopes for targets in [0, 1], by Newton's method from the plain mean; overshooting steps are halved.

    The intercept is free.
    """
    unit = Link(True, 0.0, 1.0)
    level, slopes = float(unit.score(shares.mean())), np.zeros(rows.shape[1])

    def loss(level: float, slopes: Floats) -> tuple[float, Floats]:
        scores = level + rows @ slopes
        return float(np.logaddexp(0, scores).sum() - shares @ scores) + 0.5 * penalty * float(slopes @ slopes), scores

    value, scores = loss(level, slopes)
    for _ in range(_STEPS):
        guess = unit.reward(scores)
        weight = guess * (1 - guess)
        weighted = rows * weight[:, None]
        border = weighted.sum(axis=0)
        down = rows.T @ (shares - guess) - penalty * slopes
        off = float((shares - guess).sum())
        top = max(float(weight.sum()), 1e-12)
        # the intercept is eliminated: (H - b bᵀ / h) step = down - b off / h
        system = weighted.T @ rows + penalty * np.eye(len(slopes)) - np.outer(border, border) / top
        step = np.linalg.solve(system, down - border * off / top)
        rise = (off - border @ step) / top
        size = 1.0
        while True:
            moved, new = loss(level + size * rise, slopes + size * step)
            if moved <= value + 1e-12 * abs(value) or size < 1e-3:
                break
            size /= 2
        level, slopes, gain, value, scores = level + size * rise, slopes + size * step, value - moved, moved, new
        if gain <= _CLOSE * len(shares):
            break
    return slopes


def regression_level(scores: Floats, mean: float, link: Link) -> float:
    """Return c such that the mean of link(c + scores) is `mean`, strictly between the link's ends."""
    goal = float(link.score(np.array(mean)))
    low, high = goal - float(scores.max()), goal - float(scores.min())  # all predictions below, all above
    level = goal - float(scores.mean())
    tolerance = _CLOSE * (link.highest - link.lowest) * 1e-2
    for _ in range(100):
        off = float(link.reward(level + scores).mean()) - mean
        if abs(off) <= tolerance:
            break
        low, high = (level, high) if off < 0 else (low, level)
        slope = float(link.slope(level + scores).mean())
        newton = level - off / slope if slope > 0 else low - 1
        level = newton if low < newton < high else (low + high) / 2
    return level
