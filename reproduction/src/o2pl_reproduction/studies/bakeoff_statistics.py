"""Statistics of the bake-off on arrays: wins on a data set, and over data sets.

Rewards are mean rewards of runs, [sets, seeds]; a gap is ours minus theirs, on the same rounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.protocols import Floats, Ints
from o2pl.special import ndtr
from o2pl_reproduction.claims.summary import percentile_interval

LEVEL = 0.05  # level of the tests on one data set; the paper does not give its own
SMALLEST_GAP = 0.02  # from the paper: a smaller mean gap is not a win


def sign_test(gaps: Floats) -> Floats:
    """Return the two-sided p-value of the sign test over seeds for each data set; ties are dropped. [sets]

    p = min(1, 2 P(B ≤ min(wins, losses))), B ~ Binomial(wins + losses, 1/2).
    """
    from scipy.stats import binom

    wins, losses = (gaps > 0).sum(axis=1), (gaps < 0).sum(axis=1)
    return np.asarray(np.minimum(1.0, 2 * binom.cdf(np.minimum(wins, losses), wins + losses, 0.5)))


def by_sign_test(ours: Floats, theirs: Floats) -> Ints:
    """Return 1 (win) or -1 (loss) by the paper's rule: seeds agree at `LEVEL`, mean gap of at least .02. [sets]"""
    gaps = ours - theirs
    mean = gaps.mean(axis=1)
    agreed = (sign_test(gaps) <= LEVEL) & (np.abs(mean) >= SMALLEST_GAP - 1e-12)
    return np.where(agreed, np.sign(mean), 0).astype(np.int64)


def z_scores(ours: Floats, theirs: Floats, played: Ints) -> Floats:
    """Return (p - q) / √(p(1-p)/T + q(1-q)/T) of each data set, p and q the mean rewards over seeds. [sets]

    T is the length of one run: seeds reorder the same rows, so ten of them are not ten times as much data.
    """
    p, q = ours.mean(axis=1), theirs.mean(axis=1)
    deviation = np.sqrt((p * (1 - p) + q * (1 - q)).clip(min=0) / played)
    certain = np.where(p == q, 0.0, np.copysign(np.inf, p - q))
    return np.where(deviation > 0, (p - q) / np.where(deviation > 0, deviation, 1.0), certain)


def by_z_test(ours: Floats, theirs: Floats, played: Ints) -> Ints:
    """Apply the rule of the paper's figure: one-sided Z-tests at `LEVEL`, for a win and for a loss. [sets]"""
    z = z_scores(ours, theirs, played)
    return np.where(ndtr(-z) < LEVEL, 1, np.where(ndtr(z) < LEVEL, -1, 0))


def wilcoxon_p(gaps: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test of the mean gaps; 1 if all gaps are 0."""
    from scipy.stats import wilcoxon

    gaps = gaps[gaps != 0]
    return float(wilcoxon(gaps).pvalue) if len(gaps) else 1.0


@dataclass(frozen=True)
class Record:
    """Significant wins and losses, and the mean complexity (dK) of their data sets; NaN if there are none."""

    wins: int
    losses: int
    sets: int
    complexity_of_wins: float
    complexity_of_losses: float

    @property
    def margin(self) -> float:
        """The fraction of data sets won minus the fraction lost."""
        return (self.wins - self.losses) / self.sets

    def __str__(self) -> str:
        return f"{self.wins}/{self.losses}"


def record(verdicts: Ints, complexity: Ints) -> Record:
    won, lost = verdicts > 0, verdicts < 0
    means = [float(complexity[which].mean()) if which.any() else np.nan for which in (won, lost)]
    return Record(int(won.sum()), int(lost.sum()), len(verdicts), *means)


@dataclass(frozen=True)
class Pair:
    """One learner compared with another, over data sets."""

    gap: float  # mean over sets of the mean over seeds
    interval: tuple[float, float]
    by_sign: Record
    by_z: Record
    wilcoxon: float
    worst: float  # smallest mean gap of a data set
    worst_set: int  # its index


def compare_pair(ours: Floats, theirs: Floats, played: Ints, complexity: Ints) -> Pair:
    gaps = (ours - theirs).mean(axis=1)
    return Pair(
        float(gaps.mean()),
        percentile_interval(gaps),
        record(by_sign_test(ours, theirs), complexity),
        record(by_z_test(ours, theirs, played), complexity),
        wilcoxon_p(gaps),
        float(gaps.min()),
        int(gaps.argmin()),
    )


def above_chance(rewards: Floats, n_actions: Ints) -> Floats:
    """Return normalised performance: mean reward over seeds, 0 for random (1/K) and 1 for always right. [sets]"""
    chance = 1 / n_actions
    return np.asarray((rewards.mean(axis=1) - chance) / (1 - chance))
