"""Off-policy estimators: the value of a policy from rows logged by other policies.

Every estimate is a smooth function of means over rows. So an estimator is two functions: the contributions of a row,
and how their means are combined. This gives the estimate, its standard error (delta method) and a streaming form that
can be updated in blocks and merged, for all estimators at once.

w is π(a|x)/q, r the reward, m(x, a) a reward model, v = Σ_a π(a|x) m(x, a) (an integral, for continuous actions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from o2pl.data.interactions import BLOCK
from o2pl.errors import InvalidInput
from o2pl.evaluation.intervals import one_more_row_for_interval_from_sums, sums_for_interval
from o2pl.objectives.weights import clip_weights, effective_sample_size, policy_weights
from o2pl.protocols import Floats, Ints, Penalty
from o2pl.theory.schedules import clip_level


class EstimatorInput(NamedTuple):
    """The input columns of estimators, one entry per row. [n]"""

    rewards: Floats
    weights: Floats  # π(a|x)/q; may be ∞
    played: Floats | None = None  # m(x, a) of the logged action, fitted without this row
    expected: Floats | None = None  # v(x)
    balanced: Floats | None = None  # π(a|x) / Σ_j (n_j/n) q_j(a|x): weight over the mixture of all loggers
    row_weights: Floats | None = None  # decisions that each row stands for; None: one each

    @property
    def effective_sample_size(self) -> float:
        """(Σ ω w)² / Σ (ω w)², with row weights ω."""
        return effective_sample_size(self.weights if self.row_weights is None else self.row_weights * self.weights)

    def mean(self, column: Floats) -> float:
        """Return the mean of a column over decisions: Σ ω column / Σ ω."""
        return float(column.mean() if self.row_weights is None else np.average(column, weights=self.row_weights))

    def contributions(self, column: Floats) -> Floats:
        """Return values c̄ + ω (c - c̄)/ω̄, whose plain mean is `mean(column)`, with the variance of this mean."""
        if self.row_weights is None:
            return column
        mean = self.mean(column)
        return np.asarray(mean + self.row_weights * (column - mean) / self.row_weights.mean())

    def rows(self, some: slice) -> EstimatorInput:
        given = {name: column for name, column in self._asdict().items() if column is not None}
        return EstimatorInput(**{name: column[some] for name, column in given.items()})

    def blocks(self) -> Iterator[EstimatorInput]:
        for start in range(0, len(self.rewards), BLOCK):
            yield self.rows(slice(start, start + BLOCK))


def estimator_input(
    rewards: Floats, actions: Ints, propensities: Floats, probabilities: Floats, predicted: Floats | None = None
) -> EstimatorInput:
    """Build the input from tables: π(·|x) [n, K] and, with a reward model, m(x, ·) [n, K]."""
    rows = np.arange(len(actions))
    weights = policy_weights(probabilities[rows, actions], propensities)
    if predicted is None:
        return EstimatorInput(rewards, weights)
    return EstimatorInput(rewards, weights, predicted[rows, actions], np.einsum("nk,nk->n", probabilities, predicted))


def balanced_estimator_weights(likelihoods: Floats, by_logger: Floats, loggers: Ints) -> Floats:
    """Return π(a|x) / Σ_j (n_j/n) q_j(a|x). by_logger [n, J]: propensity of the action under each of J loggers.

    With several loggers these weights are bounded by the largest logger's share: n/n_j times its own weight.
    """
    shares = np.bincount(loggers, minlength=by_logger.shape[1]) / len(loggers)
    return policy_weights(likelihoods, by_logger @ shares)


@dataclass(frozen=True)
class EstimatorSettings:
    """Settings of the estimators, fixed before the data are read."""

    clip: float = math.inf  # α of min(w, α)
    switch: float = math.inf  # rows with a larger weight use the reward model only
    shrinkage: float = math.inf  # λ of λ w / (w² + λ)
    baseline: float = 0.0  # b of b + min(w, α)(r - b) without a reward model
    penalty: Penalty | None = None  # Φ of the pessimistic value, in losses
    span: float = 1.0  # highest minus lowest reward: one unit of loss in rewards

    @classmethod
    def theory(cls, n: int) -> EstimatorSettings:
        """Return the theory's settings: clip and switch α_n of Theorem 1, shrinkage α_n² (largest weight √λ / 2)."""
        level = clip_level(float(max(n, 1)))
        return cls(level, level, 4 * level**2)


Parts = Callable[[EstimatorInput, EstimatorSettings], tuple[Floats, ...]]
Combine = Callable[[Floats, EstimatorSettings], tuple[float, Floats]]
Weigh = Callable[[EstimatorInput, EstimatorSettings], Floats]


@dataclass(frozen=True)
class Estimator:
    """An estimator: `parts` of the rows, k columns [n]; `combine` of their means, with its gradient, [k]."""

    says: str
    parts: Parts
    combine: Combine
    needs: tuple[str, ...] = ()  # required columns besides rewards and weights
    weights: Weigh | None = None  # of the rewards, or of r - m; None: it has none


def _estimator_sum(means: Floats, settings: EstimatorSettings) -> tuple[float, Floats]:
    return float(means[0]), np.ones(1)


def _estimator_ratio(means: Floats, settings: EstimatorSettings) -> tuple[float, Floats]:
    """v̄ + (w e)‾ / w̄"""
    model, top, bottom = means
    if bottom == 0:
        return math.nan, np.full(3, math.nan)  # all weights are 0: no estimate
    return float(model + top / bottom), np.array([1.0, 1 / bottom, -top / bottom**2])


def _pessimistic_estimator(means: Floats, settings: EstimatorSettings) -> tuple[float, Floats]:
    """Return the clipped value minus Φ(σ̂²), in rewards: the learner's objective with the sign reversed."""
    if settings.penalty is None:
        raise InvalidInput("penalty: found None, expected the Φ that the learner minimises")
    value, slope = settings.penalty(float(means[1]))
    return float(means[0] - settings.span * value), np.array([1.0, -settings.span * slope])


def _cut_for_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> Floats:
    return np.asarray(clip_weights(columns.weights, settings.clip))


def _kept_for_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> Floats:
    return np.where(columns.weights <= settings.switch, columns.weights, 0.0)


def _shrunk_for_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> Floats:
    """Return λ w / (w² + λ) = w / (w²/λ + 1), with limit 0 at w = ∞."""
    w = columns.weights
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(
            np.isfinite(w), w / (w * (w / settings.shrinkage) + 1), 0.0 if settings.shrinkage < math.inf else w
        )


def _doubly_robust_estimator(columns: EstimatorInput, weights: Floats) -> Floats:
    assert columns.played is not None
    assert columns.expected is not None
    return columns.expected + weights * (columns.rewards - columns.played)


def _self_normalised_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> tuple[Floats, ...]:
    return np.zeros(len(columns.rewards)), columns.weights * columns.rewards, columns.weights


def _self_normalised_dr_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> tuple[Floats, ...]:
    assert columns.played is not None
    assert columns.expected is not None
    return columns.expected, columns.weights * (columns.rewards - columns.played), columns.weights


def _clipped_estimator_parts(columns: EstimatorInput, settings: EstimatorSettings) -> tuple[Floats, ...]:
    cut = _cut_for_estimator(columns, settings)
    if columns.played is None or columns.expected is None:
        return settings.baseline + cut * (columns.rewards - settings.baseline), (cut - 1) ** 2
    return _doubly_robust_estimator(columns, cut), (cut - 1) ** 2


def _balanced_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> tuple[Floats, ...]:
    assert columns.balanced is not None
    return (columns.balanced * columns.rewards,)


def _direct_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> tuple[Floats, ...]:
    assert columns.expected is not None
    return (columns.expected,)


def _plain_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> Floats:
    return columns.weights


def _mixture_estimator(columns: EstimatorInput, settings: EstimatorSettings) -> Floats:
    assert columns.balanced is not None
    return columns.balanced


_MODEL = ("played", "expected")

ESTIMATORS: dict[str, Estimator] = {
    "ips": Estimator(
        "mean w r: unbiased, unbounded variance",
        lambda c, t: (c.weights * c.rewards,),
        _estimator_sum,
        weights=_plain_estimator,
    ),
    "snips": Estimator(
        "Σ w r / Σ w: self-normalised, within the range of observed rewards",
        _self_normalised_estimator,
        _estimator_ratio,
        weights=_plain_estimator,
    ),
    "clipped": Estimator(
        "mean min(w, α) r: biased towards 0",
        lambda c, t: (_cut_for_estimator(c, t) * c.rewards,),
        _estimator_sum,
        weights=_cut_for_estimator,
    ),
    "balanced": Estimator(
        "mean w r, w over the mixture of the loggers",
        _balanced_estimator,
        _estimator_sum,
        ("balanced",),
        _mixture_estimator,
    ),
    "dm": Estimator(
        "mean v: the reward model alone, as good as the model", _direct_estimator, _estimator_sum, ("expected",)
    ),
    "dr": Estimator(
        "mean v + w (r - m): unbiased, lower variance if the model is good",
        lambda c, t: (_doubly_robust_estimator(c, c.weights),),
        _estimator_sum,
        _MODEL,
        _plain_estimator,
    ),
    "sndr": Estimator(
        "mean v + Σ w (r - m) / Σ w: self-normalised DR",
        _self_normalised_dr_estimator,
        _estimator_ratio,
        _MODEL,
        _plain_estimator,
    ),
    "switch-dr": Estimator(
        "DR where w ≤ τ, the reward model elsewhere",
        lambda c, t: (_doubly_robust_estimator(c, _kept_for_estimator(c, t)),),
        _estimator_sum,
        _MODEL,
        _kept_for_estimator,
    ),
    "dr-shrinkage": Estimator(
        "DR with w shrunk to λ w / (w² + λ)",
        lambda c, t: (_doubly_robust_estimator(c, _shrunk_for_estimator(c, t)),),
        _estimator_sum,
        _MODEL,
        _shrunk_for_estimator,
    ),
    "pessimistic": Estimator(
        "the clipped value minus Φ: what the learner maximises", _clipped_estimator_parts, _pessimistic_estimator
    ),
}


class Estimate(NamedTuple):
    value: float
    error: float  # standard error, by the delta method; ∞ for one row
    n: int
    one_more: float = 0.0  # what one more row with the largest surprise would add: `one_more_row_for_interval`


class Stream:
    """One estimator in streaming form: `add` rows, `merge` with another stream, `estimate` at any time.

    It keeps the means of the parts and their centred products; blocks are merged without cancellation. With row weights
    ω, the parts are ω part_1, …, ω part_k and ω, and the estimate is a function of the ratios of their means.
    """

    def __init__(self, name: str, settings: EstimatorSettings | None = None) -> None:
        self.name, self.settings = name, settings or EstimatorSettings()
        self.estimator = find_estimator(name)
        self.n, self.weighted = 0, False
        self.means: Floats = np.zeros(0)
        self.products: Floats = np.zeros((0, 0))  # Σ (part - mean)(part - mean)ᵀ, [k, k]
        self.weights: Floats = np.zeros(2)  # Σ |w| and Σ w², of weights times row weights
        self.surprises = math.inf, -math.inf  # smallest and largest r, or r - m

    def add(self, columns: EstimatorInput) -> Self:
        """Add rows. If one of them is invalid, none is added."""
        for need in self.estimator.needs:
            if getattr(columns, need) is None:
                raise InvalidInput(f"{self.name}: found no column {need!r}, expected one value per row")
        pieces = [
            _estimator_moments(self._parts(block), start)
            for start, block in zip(_estimator_starts(columns), columns.blocks(), strict=True)
        ]
        if self.n and self.weighted != (columns.row_weights is not None):
            raise InvalidInput("row_weights: found rows with and without, expected all rows with weights, or none")
        self.weighted = columns.row_weights is not None
        for piece in pieces:
            self._absorb(*piece)
        for block in columns.blocks() if self.estimator.weights else ():
            self._weigh(block)
        return self

    def _weigh(self, block: EstimatorInput) -> None:
        assert self.estimator.weights is not None
        weights = self.estimator.weights(block, self.settings)
        weights = weights if block.row_weights is None else weights * block.row_weights
        modelled = block.played if "played" in self.estimator.needs else None
        model = np.empty(0) if modelled is None else modelled
        size, squares, least, most = sums_for_interval(weights, block.rewards, model)
        self.weights = self.weights + np.array([size, squares])
        self._widen(least, most)

    def _parts(self, block: EstimatorInput) -> Floats:
        with np.errstate(invalid="ignore", over="ignore"):  # ∞ · 0: reported below
            parts = np.stack(self.estimator.parts(block, self.settings))  # [k, rows]
            return parts if block.row_weights is None else np.vstack([parts * block.row_weights, block.row_weights])

    def combined(self) -> tuple[float, Floats]:
        """Return the value and its gradient with respect to the means of the parts."""
        return _combined_estimator_means(self.estimator, self.means, self.settings, self.weighted)

    def merge(self, other: Stream) -> Self:
        if (self.name, self.settings) != (other.name, other.settings):
            raise InvalidInput(
                f"merge: found {other.name} with {other.settings}, expected {self.name} with {self.settings}"
            )
        if self.n and other.n and self.weighted != other.weighted:
            raise InvalidInput(
                "merge: found rows with and without row_weights, expected all rows with weights, or none"
            )
        self.weighted = other.weighted if other.n else self.weighted
        self._absorb(other.n, other.means, other.products)
        self.weights = self.weights + other.weights
        self._widen(*other.surprises)
        return self

    def _widen(self, least: float, most: float) -> None:
        self.surprises = min(self.surprises[0], least), max(self.surprises[1], most)

    def _absorb(self, n: int, means: Floats, products: Floats) -> None:
        if n == 0:
            return
        if self.n == 0:
            self.n, self.means, self.products = n, means.copy(), products.copy()
            return
        total = self.n + n
        off = means - self.means
        self.products = self.products + products + np.outer(off, off) * (self.n * (n / total))
        self.means = self.means + off * (n / total)
        self.n = total

    def estimate(self) -> Estimate:
        if self.n == 0:
            raise InvalidInput(f"{self.name}: found no rows, expected at least one")
        value, slope = self.combined()
        if not math.isfinite(value):
            raise InvalidInput(
                f"{self.name}: found only weights of 0: the log contains no action that the policy takes"
            )
        if self.n == 1:
            return Estimate(value, math.inf, 1)
        variance = float(slope @ self.products @ slope) / (self.n - 1)
        (size, squares), (least, most) = self.weights.tolist(), self.surprises
        largest = max(most, -least) if "played" in self.estimator.needs else most - least
        rows = self.n * float(self.means[-1]) if self.weighted else self.n
        one_more = one_more_row_for_interval_from_sums(size, squares, largest, rows)
        return Estimate(value, math.sqrt(max(variance, 0.0) / self.n), self.n, one_more)


def _combined_estimator_means(
    estimator: Estimator, means: Floats, settings: EstimatorSettings, weighted: bool
) -> tuple[float, Floats]:
    """Return the value and its gradient. weighted: the last mean is that of ω, the others are divided by it."""
    if not weighted:
        return estimator.combine(means, settings)
    ratios = means[:-1] / means[-1]
    value, slope = estimator.combine(ratios, settings)
    return value, np.append(slope, -(slope @ ratios)) / means[-1]


def _estimator_starts(columns: EstimatorInput) -> range:
    return range(0, len(columns.rewards), BLOCK)


def _estimator_moments(parts: Floats, start: int) -> tuple[int, Floats, Floats]:
    means = parts.mean(axis=1)
    if not np.isfinite(means).all():
        row = int(np.argmin(np.isfinite(parts).all(axis=0)))
        raise InvalidInput(
            f"weight, row {start + row}: the importance weight overflowed (or the reward is not a number), expected"
            " finite"
            " contributions. Such a small propensity is an error in the log; 'clipped' and 'switch-dr' still work"
        )
    centred = parts - means[:, None]
    return parts.shape[1], means, centred @ centred.T


def find_estimator(name: str) -> Estimator:
    if name not in ESTIMATORS:
        raise InvalidInput(f"estimator: found {name!r}, expected one of {sorted(ESTIMATORS)}")
    return ESTIMATORS[name]


def estimate(name: str, columns: EstimatorInput, settings: EstimatorSettings | None = None) -> Estimate:
    """Return the estimate on complete columns. settings: None: the theory's for this number of rows."""
    return Stream(name, settings or EstimatorSettings.theory(len(columns.rewards))).add(columns).estimate()


def estimator_value(name: str, columns: EstimatorInput, settings: EstimatorSettings | None = None) -> float:
    """Return the value of `estimate` without its error; not finite if a weight overflowed or all are 0."""
    estimator, settings = find_estimator(name), settings or EstimatorSettings.theory(len(columns.rewards))
    with np.errstate(invalid="ignore", over="ignore"):
        means = [columns.mean(part) for part in estimator.parts(columns, settings)]
        return estimator.combine(np.array(means), settings)[0]


def estimator_rows(name: str, columns: EstimatorInput, settings: EstimatorSettings | None = None) -> Floats:
    """Return the contribution of each row, [n]: the mean is the estimate (its linearisation, for ratios)."""
    stream = Stream(name, settings or EstimatorSettings.theory(len(columns.rewards))).add(columns)
    value, slope = stream.combined()
    blocks = [slope @ (stream._parts(block) - stream.means[:, None]) for block in columns.blocks()]
    return np.asarray(value + np.concatenate(blocks))
