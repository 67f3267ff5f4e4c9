"""Calibration test of propensities: do they match how often actions were played?

If q_s is the probability with which a_s was drawn, then for any logging policy, even one that learned

    E[1{a_s = a} φ(x_s) / q_s | x_s, past] = φ(x_s)   for every action a with positive probability in x_s, and every φ.

We use φ = μ̂(a|x)², where μ̂ is the probability of a estimated from *earlier* rows. For rare actions φ/q is then small.
1/q itself would be so rare and so large that no test could keep its level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import BLOCK, Interactions
from o2pl.evaluation.multinomial import fit_action_wise_multinomial, fit_multinomial
from o2pl.protocols import Floats, Ints
from o2pl.special import gammainc, ndtr

FEWEST = 40  # with fewer rows, nothing is tested
_ENOUGH = 15.0  # minimum of Σ φ in a cell; rarer actions are pooled


class CalibrationCell(NamedTuple):
    """One action in one group of rows: the ratio Σ 1{a} φ/q over Σ φ. Its expectation is 1 if q is right."""

    action: str
    rows: str  # name of the group of rows
    ratio: float
    error: float  # standard error of the ratio under correct propensities
    p_value: float


class Calibration(NamedTuple):
    p_value: float  # of all cells: the smallest p-value times their number (Bonferroni)
    worst: CalibrationCell | None
    actions: tuple[CalibrationCell, ...]  # over all rows
    tests: int


def propensity_calibration(log: Interactions, *, bins: int = 8) -> Calibration:
    """Test the propensities of every action, over all rows and above and below the mean of each context column.

    A ratio above 1 means that q is too small, which the test reports. A ratio below 1 means that q is too large, or
    that the action was not available in some rows; the mean weight of a policy shows that. Real-valued actions are
    grouped into `bins` intervals between their 5 % and 95 % quantiles;
    q is then a density. For action sets, one ratio over all actions is tested. μ̂ is fitted to the first half of the
    log for the rows of the second half, and to the first quarter for those of the second quarter, so that the log of a
    learner can be tested too. Propensities near 1 cannot be refuted by counts: the other actions had hardly any chance.
    """
    n = len(log)
    if n < FEWEST:
        return Calibration(1.0, None, (), 0)
    if log.encoded.items is not None:
        return _calibration_of_sets(log, log.contexts)
    places, sizes, names = _numbered_for_calibration(log, bins)
    contexts: Floats = log.contexts
    middles = contexts.mean(axis=0, dtype=np.float64)  # a column of 0 and 1 is split between them
    labels = ["all"]
    for side in ("above", "up to"):
        labels += [f"{log.context_name(j)} {side} {middle:.3g}" for j, middle in enumerate(middles)]
    d, k = contexts.shape[1], len(sizes)
    sums = np.zeros((4, 2 * d + 1, k))  # Σ u, Σ u², Σ φ, Σ φ² with u = 1{a} φ/q; by group of rows
    likely = None
    for fitted, tested in _calibration_stages(n):
        likely = fit_multinomial(contexts[fitted], places[fitted], k + 1, likely)
        for rows in _calibration_blocks(tested):
            guess = likely(contexts[rows])
            phi = guess[:, :k] ** 2
            u = np.zeros_like(phi)
            inside = np.flatnonzero(places[rows] < k)
            at = places[rows][inside]
            u[inside, at] = phi[inside, at] / (log.propensities[rows][inside] * sizes[at])  # E[1{a in I}/q] = |I|
            above = (contexts[rows] > middles).astype(np.float64).T  # [d, rows]
            for total, values in zip(sums, (u, u**2, phi, phi**2), strict=True):
                everywhere, upper = values.sum(axis=0), above @ values
                total[0] += everywhere
                total[1 : d + 1] += upper
                total[d + 1 :] += everywhere - upper
    if k == 0:
        return Calibration(1.0, None, (), 0)
    rare = (
        sums[2, 0] < _ENOUGH
    )  # Σ φ does not depend on the tested actions: dropping cells by it does not bias the test
    groups = [("rare actions", g, sums[:, g, rare].sum(axis=1)) for g in range(2 * d + 1) if rare.any()]
    groups += [(names[a], g, sums[:, g, a]) for a in np.flatnonzero(~rare) for g in range(2 * d + 1)]
    cells = [_calibration_cell(name, labels[g], *four) for name, g, four in groups if four[2] >= _ENOUGH or g == 0]
    return _calibration_together(cells, tuple(cell for cell in cells if cell.rows == "all"))


def _numbered_for_calibration(log: Interactions, bins: int) -> tuple[Ints, Floats, list[str]]:
    """Return the action index of each row (k: none of the k), the measure of each action, and names."""
    if not log.continuous:
        k = int(log.n_actions or 1)
        return log.actions, np.ones(k), [log.action_name(a) for a in range(k)]
    low, high = np.quantile(log.actions, [0.05, 0.95])
    if not low < high:
        return np.zeros(len(log), np.int64), np.zeros(0), []
    edges = np.linspace(low, high, bins + 1)
    places = np.searchsorted(edges, log.actions, side="right") - 1
    places[(places < 0) | (places >= bins)] = bins
    return places, np.diff(edges), [f"{a:.3g} to {b:.3g}" for a, b in itertools.pairwise(edges)]


def _calibration_stages(n: int) -> tuple[tuple[slice, slice], ...]:
    return (slice(0, n // 4), slice(n // 4, n // 2)), (slice(0, n // 2), slice(n // 2, n))


def _calibration_blocks(rows: slice) -> Iterator[slice]:
    for start in range(rows.start, rows.stop, BLOCK):
        yield slice(start, min(start + BLOCK, rows.stop))


def _calibration_cell(action: str, rows: str, S: float, V: float, E: float, E2: float) -> CalibrationCell:
    """Test S = Σ u against E = Σ φ, with V = Σ u²: was the action played more often than q says?

    For constant q = μ̂, S would be a constant times a binomial, with variance E V/S - Σ φ². If fewer than 30 plays are
    expected (E S/V), the gamma bound of weighted Poisson counts is used, with S²/V plays. Fewer plays are no evidence:
    the action may not have been available, and where μ̂ is out of date, few plays with a large φ/q make up for the rest.
    """
    if E == 0 or S == 0:
        return CalibrationCell(action, rows, 1.0 if E == 0 else 0.0, math.inf, 1.0)
    expected, plays = E * S / V, S**2 / V
    variance = max(E * V / S - E2, 0.05 * E * V / S)
    error = math.sqrt(variance) / E
    if S <= E:
        return CalibrationCell(action, rows, S / E, error, 1.0)
    p = float(ndtr(-(S - E) / math.sqrt(variance))) if expected > 30 else float(gammainc(plays, expected))
    return CalibrationCell(action, rows, S / E, error, p)


def _calibration_together(cells: list[CalibrationCell], overall: tuple[CalibrationCell, ...]) -> Calibration:
    if not cells:
        return Calibration(1.0, None, (), 0)
    worst = min(cells, key=lambda cell: cell.p_value)
    return Calibration(min(1.0, worst.p_value * len(cells)), worst, overall, len(cells))


def _calibration_of_sets(log: Interactions, sets: ActionSets) -> Calibration:
    """Test action sets: Σ_a μ̂(a|x) = 1, so the mean of μ̂(a_s|x_s)/q_s is 1."""
    ratios, implied = [], []
    for fitted, tested in _calibration_stages(len(log)):
        here = sets[tested]
        likely = fit_action_wise_multinomial(sets[fitted], log.actions[fitted])(here)
        guess, q = likely[here.places(log.actions[tested])], log.propensities[tested]
        ratios.append(guess / q)
        implied.append(guess**2 / q + (1 - guess) ** 2 / np.maximum(1 - q, 1e-15) - 1)
    ratio = np.concatenate(ratios)
    variance = float(ratio.var(ddof=1))
    if ratio.mean() < 1:  # Σ_a μ̂²/μ - 1, implied by q
        variance = max(variance, float(np.mean(np.concatenate(implied))))
    error = math.sqrt(variance / len(ratio))
    off = abs(float(ratio.mean()) - 1)
    p = 2 * float(ndtr(-off / error)) if error > 0 else float(off < 1e-6)
    cell = CalibrationCell("any", "all", float(ratio.mean()), error, p)
    return _calibration_together([cell], (cell,))
