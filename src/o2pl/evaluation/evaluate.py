"""`evaluate`: would this policy have been better, and how sure are we?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from o2pl.action_names import places_of
from o2pl.errors import InvalidInput
from o2pl.evaluation import findings
from o2pl.evaluation.calibration import Calibration, propensity_calibration
from o2pl.evaluation.diagnostics import (
    ActionOverlap,
    Clipping,
    Drift,
    Tail,
    clip_fraction,
    drift,
    overlap_by_action,
    weight_tail,
)
from o2pl.evaluation.estimators import (
    ESTIMATORS,
    EstimatorInput,
    EstimatorSettings,
    Stream,
    balanced_weights,
    find,
    row_values,
)
from o2pl.evaluation.intervals import SampleMoments, check_delta, normal_from_moments, normal_interval
from o2pl.evaluation.logs import as_log, with_numbers
from o2pl.evaluation.reward_models import RewardModel, fit_rewards, predictions
from o2pl.evaluation.sequences import (
    ConfidenceSequence,
    confidence_sequence,
    difference_sequence,
    weighted_sequence,
)
from o2pl.interactions import Interactions
from o2pl.learners.base import BanditEstimator
from o2pl.learners.gate import DeployVerdict, verdict
from o2pl.learners.targets import Target, as_target, with_names
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.objectives.weights import clip_weights, effective_sample_size, policy_weights
from o2pl.protocols import Floats, Seed
from o2pl.validation import RewardRange, to_reward

_NOISIER = 1.1  # so much wider than that of IPS DR's interval may be


@dataclass(frozen=True)
class Valued:
    """A number with its interval."""

    name: str
    says: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Diagnostics:
    n: int
    effective: float  # effective sample size
    mean_weight: float  # 1, but for chance, where the log shows all that the policy does
    tail: Tail
    clip: float
    clipping: Clipping
    missing: float  # of the policy's mass, what the log cannot speak of
    overlap: tuple[ActionOverlap, ...]
    calibration: Calibration
    drift: Drift
    largest_weights: Floats  # quantiles of the weights, for the figure: [2, points], share of rows above and weight


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` found. Printed, it is a table; in a notebook, a page; `figure()` draws it."""

    policy: str
    estimates: tuple[Valued, ...]
    headline: str  # the estimate to quote
    baseline: Valued | None
    difference: Valued | None  # policy less baseline
    delta: float
    at_any_time: bool
    diagnostics: Diagnostics
    warnings: tuple[str, ...]
    doubt: str = ""  # why the numbers must not be acted on: propensities that are wrong, rows that were learned from
    sequence: ConfidenceSequence | None = None  # running interval of the policy's value
    difference_sequence: ConfidenceSequence | None = None
    weights: tuple[Floats, Floats] = field(default=(np.ones(0), np.ones(0)), repr=False)  # of policy and baseline

    @property
    def best(self) -> Valued:
        """The estimate to quote."""
        return next(one for one in self.estimates if one.name == self.headline)

    @property
    def value(self) -> float:
        return self.best.value

    @property
    def interval(self) -> tuple[float, float]:
        return self.best.low, self.best.high

    def safe_to_deploy(self, tolerance: float = 0.0) -> DeployVerdict:
        """Whether the lower bound of policy less baseline is above -tolerance, and nothing forbids to believe it.

        True or false, with the estimate, the bound, the effective rows and the reason in words.
        """
        if self.difference is None or self.baseline is None:
            raise InvalidInput(
                "baseline: found None, expected one to be safe against: evaluate(log, policy, baseline=...)"
            )
        gain = self.difference.value, self.difference.low
        return verdict(*gain, *self.weights, self.baseline.name, self.delta, tolerance, self.doubt)

    @property
    def verdict(self) -> str:
        """In words."""
        if self.doubt:
            return f"nothing can be said of {self.policy}: {self.doubt}"
        if self.difference is None:
            return f"{self.policy} is worth {findings.within(self.best)}"
        sure = f"with {1 - self.delta:.0%} confidence" + (", whenever one looks" if self.at_any_time else "")
        name = self.baseline.name if self.baseline else ""
        if self.difference.low > 0:
            return f"{self.policy} is better than {name}, {sure}"
        if self.difference.high < 0:
            return f"{self.policy} is worse than {name}, {sure}"
        return f"{self.policy} and {name} cannot be told apart from this log"

    def __str__(self) -> str:
        from o2pl.evaluation.render import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from o2pl.evaluation.render import as_html

        return as_html(self)

    def figure(self) -> Any:
        """A matplotlib figure: estimates, propensities, weights and the course of the log."""
        from o2pl.evaluation.figures import draw_evaluation

        return draw_evaluation(self)


def evaluate(
    log: Any,
    policy: Any,
    *,
    baseline: Any = None,
    at_any_time: bool = False,
    estimators: Sequence[str] | None = None,
    delta: float = 0.05,
    reward_range: RewardRange | None = None,
    seed: Seed = 0,
) -> Evaluation:
    """The value of a policy from a log, with intervals at level 1 - δ, checks of the log, and a comparison.

    `log` is `Interactions` (such as `read_log` returns), a learner (its own log), a `Log`, or a tuple of four columns:
    contexts, actions, rewards, propensities. `reward_range` takes the place of the log's own. `policy` and `baseline`
    are learners (or what has `predict_proba`), "uniform", "logged" (whoever made the log), the name of an action that
    is always taken, arrays of probabilities, or functions of contexts that give probabilities [n, K] or actions [n].
    Where actions have names, a policy and a log that number them differently are matched by name.

    With `at_any_time` the intervals of the value and of the difference are time-uniform: valid for logs that a learner
    collected while learning, and for looking after every row and stopping when one likes. They need the reward range
    and rows in the order of time. Otherwise intervals are normal ones, for one look at independent rows.
    Where the log does not show what the policy does, intervals are widened by what the missing part could be.
    """
    check_delta(delta)
    given = with_names(as_log(log, reward_range), policy, baseline)
    rows = with_numbers(given)
    target = as_target(policy, rows, contexts=given.contexts)
    against = None if baseline is None else as_target(baseline, rows, "baseline", contexts=given.contexts)
    if at_any_time and rows.reward_range is None:
        raise InvalidInput(
            "reward_range: found None, expected the lowest and highest reward there can be, for at_any_time"
        )
    settings = _estimator_settings(policy, rows)
    model = fit_rewards(rows, seed=seed) if len(rows) > 1 else None
    columns = _columns(rows, target, model)
    diagnostics = _diagnose(rows, target, columns, settings.clip)
    overflow = bool(np.isinf(columns.weights).any())
    estimates, left_out = _estimates(columns, settings, estimators, delta)
    widened = tuple(wider(one, rows.reward_range, diagnostics.missing, overflow) for one in estimates)
    headline = _headline(estimates)
    sequence = None
    if at_any_time and rows.reward_range is not None:
        sequence = _value_sequence(rows, target, columns.weights, delta)
        point = next(one for one in widened if one.name == headline).value
        low, high = _sound(sequence, rows.reward_range, overflow)
        says = "interval valid at every row of the log at once"
        widened = (Valued("any-time", says, point, low, high), *widened)
        headline = "any-time"
    compared = _Comparison()
    theirs: Floats = np.ones(0)
    if against is not None:
        other = _columns(rows, against, model)
        theirs = other.weights
        noisy_model = headline == "ips"
        compared = _compare(
            rows, columns, other, target, against, settings, delta, at_any_time, diagnostics, noisy_model
        )
    learned = _learned_from(policy, rows)
    return Evaluation(
        target.name,
        widened,
        headline,
        compared.baseline,
        compared.difference,
        delta,
        at_any_time,
        diagnostics,
        findings.warnings(rows, diagnostics, left_out, overflow, widened, learned),
        findings.doubt(rows, diagnostics, learned),
        sequence,
        compared.sequence,
        (columns.weights, theirs),
    )


def _headline(estimates: Sequence[Valued]) -> str:
    """The estimate to quote: DR, unless its model adds noise and IPS is narrower; else what there is."""
    widths = {one.name: one.high - one.low for one in estimates}
    if "ips" in widths and math.inf > widths.get("dr", 0.0) > _NOISIER * widths["ips"]:
        return "ips"
    return next(name for name in ("dr", "snips", "clipped", *widths) if name in widths)


# -- columns


def _columns(log: Interactions, target: Target, model: RewardModel | None) -> EstimatorInput:
    likelihoods = np.empty(len(log))
    for rows in log.blocks():
        likelihoods[rows] = target.played(rows)
    weights = policy_weights(likelihoods, log.propensities)
    modelled = None if model is None else predictions(log, [target], model)[0]
    balanced = None
    if log.by_logger is not None and log.loggers is not None:
        balanced = balanced_weights(likelihoods, log.by_logger, log.loggers)
    played, expected = modelled or (None, None)
    return EstimatorInput(log.rewards, weights, played, expected, balanced)


def _estimator_settings(policy: Any, log: Interactions) -> EstimatorSettings:
    """Of a learner its own clip, baseline and penalty; else the theory's clip and no pessimistic value."""
    plain = EstimatorSettings.theory(len(log))
    if not isinstance(policy, BanditEstimator) or not hasattr(policy, "penalty") or log.reward_range is None:
        return plain  # `Bandit` has no penalty
    known = {name: getattr(policy, name) for name in ("penalty", "clip", "baseline", "l2", "p", "beta", "delta")}
    objective = Pessimistic(**known)
    n, low, high = len(log), *log.reward_range
    baseline = float(to_reward(objective.level(log.losses), log.reward_range))
    return EstimatorSettings(objective.alpha(n), plain.switch, plain.shrinkage, baseline, objective.phi(n), high - low)


# -- estimates


def _estimates(
    columns: EstimatorInput, settings: EstimatorSettings, names: Sequence[str] | None, delta: float
) -> tuple[list[Valued], dict[str, str]]:
    """Those that the columns allow, and why others could not be had."""
    found, left_out = [], {}
    for name in names or ESTIMATORS:
        estimator = find(name)
        lacking = [need for need in estimator.needs if getattr(columns, need) is None]
        lacking += ["penalty"] if name == "pessimistic" and settings.penalty is None else []
        if lacking:
            if names is not None:
                raise InvalidInput(f"{name}: found no {lacking[0]} for this log and policy, expected one")
            continue
        try:
            value, error, n = Stream(name, settings).add(columns).estimate()
        except InvalidInput as problem:
            left_out[name] = str(problem)
            continue
        variance = error**2 * n if n > 1 else 0.0
        low, high = normal_from_moments(SampleMoments(n, value, variance), delta)
        found.append(Valued(name, estimator.says, value, low, high))
    if not found:
        raise InvalidInput("; ".join(dict.fromkeys(left_out.values())))
    return found, left_out


def _sound(sequence: ConfidenceSequence, ends: RewardRange, overflow: bool) -> tuple[float, float]:
    """The last interval; all there can be where it is empty (rows contradict each other) or a weight is absurd."""
    low, high = sequence.last
    return ends if overflow or low > high else (max(low, ends[0]), min(high, ends[1]))


def wider(one: Valued, ends: RewardRange | None, missing: float, overflow: bool) -> Valued:
    """What the log cannot speak of may bring any reward there is; of an unknown range, anything.

    No value is outside the reward range: there the interval is cut.
    """
    if overflow or (missing > 0 and ends is None):
        return Valued(one.name, one.says, one.value, -math.inf, math.inf)
    if ends is None or math.isinf(one.low):
        return one
    span = ends[1] - ends[0]
    least, most = (-span, span) if one.name == "difference" else ends
    low, high = max(one.low - missing * span, least), min(one.high + missing * span, most)
    if low > high:  # wholly outside: it has missed
        low, high = least, most
    return Valued(one.name, one.says, one.value, low, high)


# -- the other policy


class _Comparison(NamedTuple):
    baseline: Valued | None = None
    difference: Valued | None = None
    sequence: ConfidenceSequence | None = None  # of the difference


def _compare(
    log: Interactions,
    columns: EstimatorInput,
    other: EstimatorInput,
    target: Target,
    against: Target,
    settings: EstimatorSettings,
    delta: float,
    at_any_time: bool,
    diagnostics: Diagnostics,
    noisy_model: bool,
) -> _Comparison:
    own, theirs = (_comparable(given, settings, noisy_model) for given in (columns, other))
    missing = diagnostics.missing + _missing(log, against, other.weights)
    overflow = not (np.isfinite(columns.weights).all() and np.isfinite(other.weights).all())
    base = Valued(against.name, "", float(theirs.mean()), *normal_interval(theirs, delta))
    base = wider(base, log.reward_range, _missing(log, against, other.weights), overflow)
    gap = own - theirs
    if at_any_time and log.reward_range is not None:
        moving = "logged" in (target.name, against.name)
        pair = columns.weights, other.weights
        sequence = difference_sequence(log.rewards, log.reward_range, *pair, delta, moving)
        span = log.reward_range[1] - log.reward_range[0]
        low, high = _sound(sequence, (-span, span), overflow)
        base = Valued(base.name, "", base.value, *_value_sequence(log, against, other.weights, delta).last)
        return _Comparison(base, Valued("difference", "policy less baseline", float(gap.mean()), low, high), sequence)
    low, high = normal_interval(gap, delta)
    if not gap.any():  # the same policy twice
        low = high = 0.0
    difference = Valued("difference", "policy less baseline", float(gap.mean()), low, high)
    return _Comparison(base, wider(difference, log.reward_range, missing, overflow), None)


def _comparable(columns: EstimatorInput, settings: EstimatorSettings, noisy_model: bool) -> Floats:
    """Row values of the estimator that both policies allow: DR, self-normalised IPS, or the clipped one."""
    if (columns.weights == 1).all():
        return columns.rewards  # the logger: nothing to correct
    if not np.isfinite(columns.weights).all() or not columns.weights.any():
        return row_values("clipped", columns, settings)
    return row_values("snips" if columns.expected is None or noisy_model else "dr", columns, settings)


def _value_sequence(log: Interactions, target: Target, weights: Floats, delta: float) -> ConfidenceSequence:
    """V(π) at all times; of the logger, which may have learned, the mean of its values so far."""
    assert log.reward_range is not None
    if target.name == "logged":
        return confidence_sequence(log.rewards, delta, *log.reward_range, common=False)
    return weighted_sequence(weights, log.rewards, delta, log.reward_range)


# -- the log


def _diagnose(log: Interactions, target: Target, columns: EstimatorInput, clip: float) -> Diagnostics:
    weights = columns.weights
    level = clip if math.isfinite(clip) else EstimatorSettings.theory(len(log)).clip
    points = np.unique(np.geomspace(1, len(log), 200).astype(np.int64))  # the 1st, …, nth largest weight
    return Diagnostics(
        len(log),
        effective_sample_size(weights),
        float(weights.mean()),
        weight_tail(weights),
        level,
        clip_fraction(weights, level),
        _missing(log, target, weights),
        overlap_by_action(log, target, weights),
        propensity_calibration(log),
        drift(log, clip_weights(weights, level) * log.rewards),
        np.stack([points / len(log), np.partition(weights, len(log) - points)[len(log) - points]]),
    )


def _missing(log: Interactions, target: Target, weights: Floats) -> float:
    """Mass on actions that were never logged; or what the weights fall short of 1, beyond three standard errors."""
    never = sum(one.mass for one in overlap_by_action(log, target, weights) if one.rows == 0)
    if len(log) < 2 or not np.isfinite(weights).all():
        return float(never)
    spread = 3 * float(weights.std(ddof=1)) / math.sqrt(len(log))
    return float(np.clip(max(never, 1 - float(weights.mean()) - spread), 0.0, 1.0))


def _learned_from(policy: Any, log: Interactions) -> float:
    """The share of the log with which a learner's own log begins or ends, by actions and propensities."""
    if not isinstance(policy, BanditEstimator) or policy._engine is None:
        return 0.0
    own = policy.log_
    n, played = min(len(own), len(log)), own.actions
    if own.action_names != log.action_names and own.action_names and log.action_names:
        played = places_of(own.action_names, log.action_names)[played]
    parts = (slice(0, n), slice(len(own) - n, None)), (slice(0, n), slice(len(log) - n, None))
    same = any(
        np.array_equal(own.propensities[mine], log.propensities[theirs])
        and np.array_equal(played[mine], log.actions[theirs])
        for mine in parts[0]
        for theirs in parts[1]
    )
    return n / len(log) if same else 0.0
