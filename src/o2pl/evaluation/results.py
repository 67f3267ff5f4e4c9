"""Result classes of `evaluate`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.evaluation import findings
from o2pl.evaluation.bounds import Kind
from o2pl.evaluation.calibration import Calibration
from o2pl.evaluation.diagnostics import ActionOverlap, Clipping, Drift, Tail
from o2pl.evaluation.judgement import DeployVerdict, Judgement, judge, judged_without_conclusion, judgement_on_deploying
from o2pl.evaluation.sensitivity import Sensitivity
from o2pl.evaluation.sequences import ConfidenceSequence
from o2pl.objectives.weights import effective_sample_size
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Valued:
    """An estimate with its confidence interval."""

    name: str
    says: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Diagnostics:
    n: int
    effective: float  # effective sample size
    mean_weight: float  # expectation 1 if the log covers everything the policy does
    tail: Tail
    clip: float
    clipping: Clipping
    missing: float  # the policy's probability mass that the log does not cover
    overlap: tuple[ActionOverlap, ...]
    calibration: Calibration
    drift: Drift
    largest_weights: Floats  # quantiles of the weights, for the figure: [2, points], fraction of rows above and weight


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of `evaluate`. `print` shows a table; notebooks show HTML; `figure()` draws it."""

    policy: str
    estimates: tuple[Valued, ...]
    headline: str  # name of the recommended estimate
    baseline: Valued | None
    difference: Valued | None  # policy minus baseline
    delta: float
    at_any_time: bool
    diagnostics: Diagnostics
    warnings: tuple[str, ...]
    doubt: str = ""  # why the numbers should not be trusted: wrong propensities, training rows
    sequence: ConfidenceSequence | None = None  # running interval of the policy's value
    difference_sequence: ConfidenceSequence | None = None
    why_estimated: str = ""  # why propensities are estimated; empty: they are the logged ones
    sensitivity: Sensitivity | None = None  # of the difference (without a baseline: the value) to wrong propensities
    weights: tuple[Floats, Floats] = field(default=(np.ones(0), np.ones(0)), repr=False)  # of policy and baseline
    kind: Kind = "none"  # of the interval of the difference, without a baseline of the value
    unsupported: float = 0.0  # share of the decisions concerned that the log hardly shows

    @property
    def best(self) -> Valued:
        """The recommended estimate."""
        return next(one for one in self.estimates if one.name == self.headline)

    @property
    def value(self) -> float:
        return self.best.value

    @property
    def interval(self) -> tuple[float, float]:
        return self.best.low, self.best.high

    @property
    def judgement(self) -> Judgement:
        """Whether the policy is better than the baseline."""
        return self._judged()

    def _judged(self, tolerance: float = 0.0, gamma: float = 1.0) -> Judgement:
        """Judge the difference. gamma: factor by which the true odds may be off, for estimated propensities."""
        if self.difference is None or self.baseline is None:
            raise InvalidInput(
                "baseline: found None, expected a baseline to compare with: evaluate(log, policy, baseline=...)"
            )
        low, high = self.difference.low, self.difference.high
        if self.sensitivity is not None:
            off = self.sensitivity.at(gamma)
            low, high = min(low, off.low), max(high, off.high)
        effective = min(effective_sample_size(one) for one in self.weights) if len(self.weights[1]) else 0.0
        return judge(
            self.policy, self.baseline.name, self.difference.value, low, high, delta=self.delta, kind=self.kind,
            rows=self.diagnostics.n, effective=effective or self.diagnostics.effective, unsupported=self.unsupported,
            doubt=self.doubt, tolerance=tolerance, condition=findings.finding_over_which_rows(self.diagnostics),
        )  # fmt: skip

    def safe_to_deploy(self, tolerance: float = 0.0) -> DeployVerdict:
        """Return whether the lower bound of policy minus baseline is above -tolerance, and the numbers can be trusted.

        The verdict is true or false in conditions, and has the estimate, the bound, the effective sample size and the
        reason. With estimated propensities, the bound holds for true odds that are off by up to a factor of 2.
        """
        return judgement_on_deploying(self._judged(tolerance, 2.0), tolerance)

    @property
    def verdict(self) -> str:
        """The result as a sentence."""
        if self.difference is None:
            if self.doubt:
                return judged_without_conclusion(self.doubt, self.policy)
            return f"{self.policy} is worth {findings.said_within_finding(self.best)}" + self._off_by_half()
        return self.judgement.sentence("" if self.sensitivity is None else f", {_long_results(self.sensitivity.flips)}")

    def _off_by_half(self) -> str:
        if self.sensitivity is None:
            return ""
        off = self.sensitivity.at(1.5)
        return f", or {off.low:.4g} to {off.high:.4g} if the true odds are off by up to a factor of {off.gamma:g}"

    def __str__(self) -> str:
        from o2pl.evaluation.evaluation_report import evaluation_text

        return evaluation_text(self)

    def _repr_html_(self) -> str:
        from o2pl.evaluation.evaluation_report import evaluation_html

        return evaluation_html(self)

    def figure(self) -> Figure:
        """Draw estimates, propensities, weights and the values over time, as a matplotlib figure."""
        from o2pl.evaluation.evaluation_figures import evaluation_figure

        return evaluation_figure(self)


def _long_results(flips: float) -> str:
    if flips == float("inf"):
        return "however wrong the estimated propensities are"
    return f"as long as the true odds are within a factor of {flips:.2f} of the estimated ones"
