"""The objective O2PL minimises: clipped centred risk plus the pessimistic penalty.

    R̂ = mean (min(w, α) - 1)(y - b),  σ̂² = mean (min(w, α) - 1)²,  V = R̂ + Φ(σ̂²) + l2 |θ|²/2n,   w = π(a|x)/q

With a control variate m(x, a) instead of the constant b, V gains mean Σ_a π(a|x) (m(x, a) - b).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from o2pl.data.contexts import own_context_offsets
from o2pl.data.interactions import Interactions
from o2pl.objectives.control import Control
from o2pl.objectives.penalty import Phi, Tangent
from o2pl.objectives.terms import Totals, baseline_at, clip_at, penalty_at
from o2pl.objectives.weights import clip_weights, clipped_sums, importance_weights, split_cotangent
from o2pl.policies.finite import FinitePolicies
from o2pl.policies.sampling import log_softmax, pull_to_scores
from o2pl.protocols import Array, Floats, Ints, Penalty, Policy
from o2pl.storage import storable
from o2pl.validation import check_number

RISK, VARIANCE, MODELLED = range(3)  # positions of the sums over rows
_NONE = 1e-9  # smaller variances are rounding errors


@storable
@dataclass(frozen=True)
class Pessimistic:
    """The pessimistic objective. For its settings, see `O2PL`."""

    penalty: float = 1.0
    clip: Any = "theory"
    baseline: Any = None
    l2: float = 0.0
    p: float = 0.0
    beta: float = 1.0
    delta: float = 0.05
    extra = 0

    def __post_init__(self) -> None:
        check_number("penalty", self.penalty, 0)
        check_number("l2", self.l2, 0)
        check_number("beta", self.beta, 0, 1, open_low=True)
        check_number("p", self.p, 0, below=2)
        check_number("delta", self.delta, 0, below=1, open_low=True)
        if self.clip not in (None, "theory"):
            check_number("clip", self.clip, 1, instead="'theory', None or ")
        if self.baseline not in (None, "mean"):
            check_number("baseline", self.baseline, -1, 0, instead="'mean', None or ")

    @cached_property
    def numbers(self) -> Floats:
        """The settings for kernels; `terms` defines the positions."""
        clip = math.nan if self.clip == "theory" else math.inf if self.clip is None else float(self.clip)
        baseline = math.nan if self.baseline == "mean" else float(self.baseline or 0.0)
        return np.array([clip, self.beta, self.p, self.delta, self.penalty, baseline, self.l2])

    def alpha(self, t: float) -> float:
        """Return the clipping level for a log of t rows."""
        return clip_at(self.numbers, float(t))

    def phi(self, t: float) -> Phi:
        return Phi(*penalty_at(self.numbers, float(t)))

    def level(self, losses: Floats, weights: Floats | None = None) -> float:
        """Return the baseline b of rows with these losses."""
        if weights is None:
            return baseline_at(self.numbers, float(losses.sum()), float(len(losses)))
        return baseline_at(self.numbers, float(weights @ losses), float(weights.sum()))

    def level_of(self, totals: Totals) -> float:
        """Return the baseline b of a log with these totals."""
        return baseline_at(self.numbers, totals.losses, float(totals.rows))

    def rate(self, n: int) -> float:
        """Return the learning rate of a union's exponential weights."""
        return 0.5

    def prepare(
        self, rows: Interactions, control: Control | Floats | None = None, weights: Floats | None = None,
        totals: Totals | None = None,
    ) -> PessimisticLog:  # fmt: skip
        """Prepare rows. `control`: a control variate, or a baseline per row, [n]. `weights`: of the rows, [n].

        `totals`: of the whole log, if these rows are a part of it; without weights.
        """
        losses, n = rows.losses, float(len(rows) if weights is None else weights.sum())
        baseline: Any = self.level(losses, weights)
        if totals is not None:
            n, baseline = totals.rows, self.level_of(totals)
        if isinstance(control, np.ndarray):
            baseline, control = control, None
        return PessimisticLog(
            rows.actions, losses, rows.propensities, self.alpha(n), self.phi(n), baseline, control, self.l2,
            rows.encoded.offsets, weights, totals,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PessimisticLog:
    """A log prepared for the objective: everything that is constant while the policy changes.

    `baseline` is b, 0 in the paper; it may differ by row, [n], as long as it depends neither on the row's
    action nor on its loss, since E[w - 1 | x] = 0.
    """

    actions: Array
    losses: Floats
    propensities: Floats
    alpha: float
    penalty: Penalty
    baseline: float | Floats = 0.0
    control: Control | None = None
    l2: float = 0.0
    offsets: Ints | None = None  # of action sets
    weights: Floats | None = None  # of the rows; None: equal
    totals: Totals | None = None  # of the whole log, if this is a part of it
    negligible = 0.0

    @cached_property
    def size(self) -> float:
        """The divisor that turns sums over rows into means."""
        if self.totals is not None:
            return self.totals.rows
        return float(len(self.actions) if self.weights is None else self.weights.sum())

    @property
    def subtracted(self) -> float | Floats:
        """What is subtracted from the losses: b, or the control variate of the played actions, [n]."""
        return self.baseline if self.control is None else self.control.played

    @cached_property
    def residuals(self) -> Floats:
        return np.asarray(self.losses - self.subtracted)

    def started(self, params: Floats) -> Floats:
        return params

    def partial(
        self, scores: Floats, rows: slice | Ints = slice(None), extra: Floats | None = None
    ) -> tuple[Floats, list[Floats]]:
        """Return sums of risk, variance and the control's part, and ∂/∂scores of risk and control, and of variance.

        ∂V/∂log π_s = 1{w < α} w [(y - b) + 2 Φ'(σ̂²)(w - 1)] / n: Φ' is known only after all rows.
        """
        weigh: Any = 1.0 if self.weights is None else self.weights[rows]
        log_pi, played, own = self._likelihoods(scores, rows)
        ratios = importance_weights(own, self.propensities[rows])
        residuals = self.residuals[rows]
        sums = np.zeros(3)
        if self.weights is None:
            sums[:2] = clipped_sums(ratios, residuals, self.alpha)
        else:
            centred = clip_weights(ratios, self.alpha) - 1
            sums[:2] = weigh @ (centred * residuals), weigh @ centred**2
        of_risk, of_variance = (weigh * each for each in split_cotangent(ratios, residuals, self.alpha))
        if log_pi is None:
            return sums, [of_risk, of_variance]
        pulled = np.zeros((2, *log_pi.shape))  # cotangents of all log probabilities
        if self.control is not None:
            pulled[0] = np.exp(log_pi) * (self.control.of_rows(rows) - self.baseline)
            pulled[0] *= weigh if self.weights is None else weigh[:, None]
            sums[MODELLED] = pulled[0].sum()
        pulled[0][played] += of_risk
        pulled[1][played] += of_variance
        offsets = None if self.offsets is None else self._offsets(rows)
        return sums, [pull_to_scores(log_pi, each, offsets) for each in pulled]

    def _likelihoods(self, scores: Floats, rows: slice | Ints) -> tuple[Floats | None, Any, Floats]:
        """Return all log probabilities (None for real-valued actions), the logged actions' positions, and theirs."""
        actions = self.actions[rows]
        if np.issubdtype(actions.dtype, np.floating):
            return None, None, scores.astype(np.float64)
        log_pi = log_softmax(scores, None if self.offsets is None else self._offsets(rows))
        played: Any = (np.arange(len(actions)), actions)
        if self.offsets is not None:
            played = self._offsets(rows)[:-1] + actions
        return log_pi, played, log_pi[played]

    def _offsets(self, rows: slice | Ints) -> Ints:
        assert self.offsets is not None
        return own_context_offsets(self.offsets, rows)

    def combine(self, params: Floats, sums: Floats, gradients: Sequence[Floats]) -> tuple[float, Floats]:
        pessimism, slope = self.penalty(float(sums[VARIANCE]) / self.size)
        shrink = self.l2 / self.size
        value = float(sums[RISK] + sums[MODELLED]) / self.size + pessimism + 0.5 * shrink * float(params @ params)
        return value, (gradients[0] + slope * gradients[1]) / self.size + shrink * params

    def value(self, sums: Floats) -> float:
        """Return the objective without weight decay."""
        return float(sums[RISK] + sums[MODELLED]) / self.size + self.penalty(float(sums[VARIANCE]) / self.size)[0]

    def touching(self, sums: Floats) -> PessimisticLog:
        """Return the objective with the penalty replaced by its tangent at the variance of these sums.

        At variance 0 (the logging policy) the tangent is vertical and nothing could move. The tangent at the variance
        that a single row makes is an upper bound too.
        """
        total = float(sums[VARIANCE])
        variance = (total if total > _NONE else 1.0) / self.size
        return replace(self, penalty=Tangent(variance, *self.penalty(variance)))


@dataclass(frozen=True, eq=False)
class PolicyValue:
    """The function θ -> V(π_θ) with its gradient: the plain composition of a policy and an objective, for an oracle.

    `features` are those of the log's rows; they are processed in blocks of `stretch` rows.
    """

    policy: Policy
    features: Any
    log: Any  # a PreparedLog
    extra: int = 0  # number of parameters of the objective; they come last
    stretch: int = 2**14
    incremental = False

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        sums, gradients = self.sums(params)
        value, gradient = self.log.combine(params, sums, gradients)
        return value, gradient

    def sums(self, params: Floats, with_gradients: bool = True) -> tuple[Floats, list[Floats]]:
        """Return the sums over all rows and the parts of the gradient, for `combine`."""
        own, extra = params[: len(params) - self.extra], params[len(params) - self.extra :]
        sums: Any = 0.0
        gradients: list[Floats] = []
        for first in range(0, len(self.log.actions), self.stretch):
            rows = slice(first, first + self.stretch)
            scores, pullback = self.policy.forward(own, self.features[rows], self.log.actions[rows])
            more, cotangents = self.log.partial(scores, rows, extra)
            sums = sums + more
            if with_gradients:
                pulled = [pullback(cotangent) for cotangent in cotangents]
                gradients = [a + b for a, b in zip(gradients, pulled, strict=True)] if gradients else pulled
        return sums, gradients

    def batch(self, params: Floats, rows: Ints) -> tuple[float, Floats]:
        """Estimate the objective and its gradient from these rows."""
        own, extra = params[: len(params) - self.extra], params[len(params) - self.extra :]
        scores, pullback = self.policy.forward(own, self.features[rows], self.log.actions[rows])
        sums, cotangents = self.log.partial(scores, rows, extra)
        share = len(self.log.actions) / len(rows)
        value, gradient = self.log.combine(params, share * sums, [share * pullback(each) for each in cotangents])
        return value, gradient

    def values(self) -> Floats:
        """Return the objective of every member of a finite class, [J]."""
        assert isinstance(self.policy, FinitePolicies)
        vertices = [self.policy.vertex(j) for j in range(self.policy.size)]
        return np.array([self.log.value(self.sums(vertex, with_gradients=False)[0]) for vertex in vertices])

    def majorant(self, params: Floats) -> PolicyValue:
        """Return an upper bound that touches the objective at these parameters: Φ is concave in the variance.

        An objective that is a sum over rows is its own majorant.
        """
        if not hasattr(self.log, "touching"):
            return self
        return replace(self, log=self.log.touching(self.sums(params, with_gradients=False)[0]))
