"""Quantiles and tails of the reward under a policy, with a band that holds for all of them at once.

P(r ≤ ν) is the value of the policy for the reward 1{r ≤ ν}, and P(r < ν) that for 1{r < ν}. The first is bounded from
below and the second from above at up to 40 thresholds ν_1 < … < ν_m, at level δ/m together, as every value is
(`gains`). Then for the quantile Q(u) = inf{ν: P(r ≤ ν) ≥ u}

    Q(u) ≥ ν_k  if the bound of P(r < ν_k) is below u,      Q(u) ≤ ν_k  if the bound of P(r ≤ ν_k) is at least u,

for all u at once; beyond the thresholds a reward may be anything in the range. The mean of the worst share a of the
rewards, CVaR_a = (1/a) ∫_0^a Q(u) du, integrates these bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.calibration import propensity_calibration
from o2pl.evaluation.comparison import Shown
from o2pl.evaluation.evaluated_logs import as_evaluated_log, numeric_evaluated_log
from o2pl.evaluation.findings import said_within_finding
from o2pl.evaluation.gains import ends_of_gains
from o2pl.evaluation.intervals import check_interval_delta
from o2pl.evaluation.judgement import Judgement, judge, judged_without_conclusion
from o2pl.evaluation.results import Valued
from o2pl.evaluation.unshown import Side
from o2pl.evaluation.unusable import unusable_log
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import PolicyRows, Target, as_target, with_target_names
from o2pl.objectives.weights import effective_sample_size
from o2pl.protocols import Floats
from o2pl.validation import RewardRange, check_number

_MOST = 40  # thresholds


class Band(NamedTuple):
    """The distribution of rewards under a policy, and bounds of it at thresholds."""

    thresholds: Floats  # [m]
    low: Floats  # of P(r ≤ ν), rising
    high: Floats  # of P(r < ν), rising
    rewards: Floats  # sorted
    shares: Floats  # Σ w 1{r ≤ ν} / Σ w at them
    ends: tuple[float, float]  # of rewards; infinite if unknown

    def quantile(self, level: float) -> tuple[float, float, float]:
        """Return estimate and bounds of Q(level)."""
        low, high = self._bounds(level)
        estimate = float(self.rewards[min(int(np.searchsorted(self.shares, level)), len(self.rewards) - 1)])
        return min(max(estimate, low), high), low, high

    def _bounds(self, level: float) -> tuple[float, float]:
        below, sure = int(np.searchsorted(self.high, level)), int(np.searchsorted(self.low, level))
        low = float(self.thresholds[below - 1]) if below else self.ends[0]
        return low, float(self.thresholds[sure]) if sure < len(self.thresholds) else self.ends[1]

    def tail(self, share: float) -> tuple[float, float, float]:
        """Return estimate and bounds of the mean of the worst share of rewards."""
        mass = np.diff(np.minimum(self.shares, share), prepend=0.0)
        mass[-1] += max(share - float(mass.sum()), 0.0)
        inside = np.concatenate([self.low, self.high])
        steps = np.unique(np.concatenate([[0.0, share], inside[(inside > 0) & (inside < share)]]))
        middles, widths = (steps[1:] + steps[:-1]) / 2, np.diff(steps)
        bounds = np.array([self._bounds(float(level)) for level in middles])
        low, high = (float(widths @ bounds[:, end]) / share for end in (0, 1))
        estimate = float(mass @ self.rewards) / share
        return min(max(estimate, low), high), low, high


@dataclass(frozen=True, eq=False)
class Distribution:
    """The result of `evaluate_quantiles`. `print` shows a table. All intervals hold jointly."""

    policy: str
    quantiles: dict[float, Valued]
    tails: dict[float, Valued]  # means of the worst shares
    baseline: str
    baseline_quantiles: dict[float, Valued]
    baseline_tails: dict[float, Valued]
    judgements: dict[str, Judgement]  # of every difference from the baseline
    band: Band
    delta: float
    rows: int
    effective: float
    doubt: str = ""

    @property
    def verdict(self) -> str:
        if self.doubt:
            return judged_without_conclusion(self.doubt, self.policy)
        if self.judgements:
            together = " (jointly for all quantiles)"
            return "; ".join(f"{name}: {one.sentence(together)}" for name, one in self.judgements.items())
        return "; ".join(
            f"{one.name} {said_within_finding(one)}" for one in (*self.quantiles.values(), *self.tails.values())
        )

    def __str__(self) -> str:
        lines = [f"{'':22}{'estimate':>10}{'from':>10}{'to':>10}" + (f"{self.baseline:>14}" if self.baseline else "")]
        theirs = [*self.baseline_quantiles.values(), *self.baseline_tails.values()]
        for k, one in enumerate([*self.quantiles.values(), *self.tails.values()]):
            line = f"{one.name:22}{one.value:10.4g}{one.low:10.4g}{one.high:10.4g}"
            lines.append(line + (f"{theirs[k].value:14.4g}" if theirs else ""))
        lines += ["", f"n = {self.rows:,}, effective sample size {self.effective:,.0f}"]
        lines += [f"intervals: {1 - self.delta:.0%}, joint, fixed sample", f"verdict: {self.verdict}"]
        return "\n".join(lines)


def evaluate_quantiles(
    log: object,
    policy: object,
    *,
    baseline: object = None,
    levels: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 0.9),
    worst: Sequence[float] = (0.1,),
    delta: float = 0.05,
    reward_range: RewardRange | None = None,
) -> Distribution:
    """Estimate quantiles of the reward under a policy, and the means of its worst shares (CVaR), with a joint band.

    `log`, `policy` and `baseline` are as for `evaluate`; the propensities must be known. All intervals of the policy,
    and of the baseline, hold jointly with probability 1 - δ for independent rows. Every quantile and every mean of a
    worst share is compared with the baseline's.
    """
    check_interval_delta(delta)
    for level in (*levels, *worst):
        check_number("levels and worst", level, 0.0, open_low=True, below=1.0)
    given = with_target_names(as_evaluated_log(log, reward_range), policy, baseline)
    if not given.has_propensities:
        raise InvalidInput("propensities: found None, expected logged ones, for quantiles")
    rows = numeric_evaluated_log(given.thinned())
    raw = given.thinned().contexts
    named = [("policy", policy)] + ([] if baseline is None else [("baseline", baseline)])
    targets = [as_target(one, rows, name, contexts=raw) for name, one in named]
    doubt = unusable_log(rows, propensity_calibration(rows))
    weights = [one.inputs.weights for one in columns_for_values(rows, targets, None)]
    effective = min(effective_sample_size(one) for one in weights)
    shown = Shown(rows)
    found = [_quantile_band(rows, one, shown, delta / len(targets)) for one in targets]
    parts = [_read_quantiles(band, levels, worst) for band, _ in found]
    judgements = {}
    if baseline is not None:
        (_, unsupported), (_, other) = found
        for key, mine in {**parts[0][0], **{-share: one for share, one in parts[0][1].items()}}.items():
            against = parts[1][0][key] if key > 0 else parts[1][1][-key]
            judgements[mine.name] = judge(
                targets[0].name, targets[1].name, mine.value - against.value, mine.low - against.high,
                mine.high - against.low, delta=delta, kind="normal, with skew", rows=len(rows), effective=effective,
                unsupported=max(unsupported, other), doubt=doubt,
            )  # fmt: skip
    nothing: tuple[dict[float, Valued], dict[float, Valued]] = ({}, {})
    theirs = parts[1] if baseline is not None else nothing
    return Distribution(
        targets[0].name, *parts[0], targets[1].name if baseline is not None else "", *theirs, judgements, found[0][0],
        delta, len(rows), effective, doubt,
    )  # fmt: skip


def _read_quantiles(
    band: Band, levels: Sequence[float], worst: Sequence[float]
) -> tuple[dict[float, Valued], dict[float, Valued]]:
    quantiles = {level: Valued(f"{level:.4g} quantile", "", *band.quantile(level)) for level in levels}
    return quantiles, {share: Valued(f"mean of worst {share:.4g}", "", *band.tail(share)) for share in worst}


def _quantile_band(log: Interactions, target: Target, shown: Shown, delta: float) -> tuple[Band, float]:
    """Return the band of the policy's distribution at level δ, and the share that the log hardly shows."""
    r, (lowest, highest) = log.rewards, log.reward_range or (-math.inf, math.inf)
    points = np.linspace(0, 1, _MOST + 1)[1:]
    thresholds = np.unique(r)
    if len(thresholds) > _MOST:
        thresholds = np.unique(np.quantile(r, points, method="inverted_cdf"))
    columns = columns_for_values(log, [target], None)[0].inputs
    unsupported, known = 0.0, dict[int, tuple[float, float]]()

    def bounds(below: Floats) -> tuple[float, float]:
        nonlocal unsupported
        count = int(below.sum())
        if count not in known:
            model = _Constant(log, float(below.mean()))
            even = np.full(len(log), model.level)
            side = Side(target, columns._replace(played=even, expected=even))
            rewards = log.changed(rewards=below, reward_range=(0.0, 1.0))
            sums = shown.gains(rewards, target.name, [side], model, False).sums
            known[count] = ends_of_gains(sums, delta / len(thresholds))[1:3]
            unsupported = max(unsupported, sums.unsupported)
        return known[count]

    low = [1.0 if one >= highest else bounds((r <= one) * 1.0)[0] for one in thresholds.tolist()]
    high = [0.0 if one <= lowest else bounds((r < one) * 1.0)[1] for one in thresholds.tolist()]
    order = np.argsort(r, kind="stable")
    weights = np.minimum(columns.weights[order], 1e300)
    shares = np.cumsum(weights) / max(float(weights.sum()), 1e-300)
    rising = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
    return Band(thresholds, *rising, r[order], shares, (lowest, highest)), unsupported


@dataclass(frozen=True, eq=False)
class _Constant:
    """The reward model that knows only the mean."""

    log: Interactions
    level: float

    def all_actions(self, rows: slice) -> Floats:
        entries = self.log.contexts[rows]
        flat = getattr(entries, "offsets", None)
        count = rows.stop - rows.start
        return np.full(int(flat[-1]) if flat is not None else (count, int(self.log.n_actions or 1)), self.level)

    def table(self, rows: slice) -> tuple[Floats, Floats | None]:
        return np.full(rows.stop - rows.start, self.level), None

    def expected(self, does: PolicyRows, rows: slice, table: Floats | None) -> Floats | None:
        return np.full(len(does.played), self.level)
