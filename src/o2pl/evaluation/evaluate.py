"""`evaluate`: off-policy evaluation of one or several policies on a log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from o2pl.data.action_names import places_of_action_names
from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation import findings
from o2pl.evaluation.calibration import Calibration, propensity_calibration
from o2pl.evaluation.candidates import Candidates, as_candidates, evaluate_candidates
from o2pl.evaluation.comparison import Comparison, Shown, comparison_of_sides, comparison_one_more, comparison_rows
from o2pl.evaluation.control_group import CONTROL, asks_for_control_group, with_control_group
from o2pl.evaluation.diagnostics import (
    diagnostics_of_clip_fraction,
    diagnostics_of_drift,
    diagnostics_of_overlap,
    diagnostics_of_weight_tail,
)
from o2pl.evaluation.estimators import EstimatorSettings
from o2pl.evaluation.evaluated_logs import as_evaluated_log, numeric_evaluated_log
from o2pl.evaluation.gains import Ends
from o2pl.evaluation.intervals import check_interval_delta
from o2pl.evaluation.propensities import with_estimated_propensities
from o2pl.evaluation.results import Diagnostics, Evaluation, Valued
from o2pl.evaluation.reward_models import RewardModel, fit_rewards
from o2pl.evaluation.running_rewards import running_rewards
from o2pl.evaluation.sensitivity import Sensitivity, sensitivity
from o2pl.evaluation.slope import slope_tuned
from o2pl.evaluation.truncation import truncated, truncated_by_policy, truncation_cost
from o2pl.evaluation.unshown import Model, Side
from o2pl.evaluation.unusable import unusable_propensities
from o2pl.evaluation.values import (
    PolicyColumns,
    columns_for_values,
    estimated_values,
    headline_value,
    settings_for_values,
    value_mass_missing,
    wider,
)
from o2pl.learners.base import BanditEstimator
from o2pl.learners.targets import Target, as_target, with_target_names
from o2pl.objectives.weights import clip_weights
from o2pl.protocols import Seed
from o2pl.validation import RewardRange

if TYPE_CHECKING:
    from o2pl.evaluation.metrics import Metrics

PropensityChoice = Literal["auto", "logged", "estimated"]
Levels = Literal["theory", "slope"]


@overload
def evaluate(
    log: Any, policy: Any = "logged", *, metrics: Mapping[str, Any], baseline: Any = None, at_any_time: bool = False,
    estimators: Sequence[str] | None = None, delta: float = 0.05, reward_range: RewardRange | None = None,
    propensities: PropensityChoice = "auto", segments: Any = None, rows_per_day: float | None = None,
    control: Any = None, control_share: float | None = None, levels: Levels = "theory",
    truncate: RewardRange | None = None, seed: Seed = 0,
) -> Metrics: ...  # fmt: skip
@overload
def evaluate(
    log: Any, policy: Mapping[str, Any] | list[Any], *, baseline: Any = None, at_any_time: bool = False,
    estimators: Sequence[str] | None = None, delta: float = 0.05, reward_range: RewardRange | None = None,
    propensities: PropensityChoice = "auto", segments: Any = None, rows_per_day: float | None = None,
    control: Any = None, control_share: float | None = None, levels: Levels = "theory",
    truncate: RewardRange | None = None, seed: Seed = 0,
) -> Candidates: ...  # fmt: skip
@overload
def evaluate(
    log: Any, policy: Any = "logged", *, baseline: Any = None, at_any_time: bool = False,
    estimators: Sequence[str] | None = None, delta: float = 0.05, reward_range: RewardRange | None = None,
    propensities: PropensityChoice = "auto", segments: Any = None, rows_per_day: float | None = None,
    control: Any = None, control_share: float | None = None, levels: Levels = "theory",
    truncate: RewardRange | None = None, seed: Seed = 0,
) -> Evaluation: ...  # fmt: skip
def evaluate(
    log: Any,
    policy: Any = "logged",
    *,
    baseline: Any = None,
    at_any_time: bool = False,
    estimators: Sequence[str] | None = None,
    delta: float = 0.05,
    reward_range: RewardRange | None = None,
    propensities: PropensityChoice = "auto",
    segments: Any = None,
    rows_per_day: float | None = None,
    metrics: Mapping[str, Any] | None = None,
    control: Any = None,
    control_share: float | None = None,
    levels: Levels = "theory",
    truncate: RewardRange | None = None,
    seed: Seed = 0,
) -> Evaluation | Candidates | Metrics:
    """Estimate the value of a policy from a log, with confidence intervals at level 1 - δ and checks of the log.

    Parameters
    ----------
    log
        `Interactions` (from `read_log`, for example), a learner (its own log), a `Log`, or a tuple of four columns:
        contexts, actions, rewards, propensities.
    policy, baseline
        A learner (or any object with `predict_proba`), "uniform", "logged" (the policy that made the log), the name of
        an action that is always taken, an array of probabilities, or a function of contexts that returns probabilities
        [n, K] or actions [n]. If actions have names, policy and log are matched by name. Several policies, as a list or
        a dictionary of names, are compared jointly; the baseline is then one more candidate.
    delta
        Error probability δ of the intervals.
    at_any_time
        Anytime-valid intervals of the value and of the difference: valid for the log of a learner, and if you look
        after every row and stop when you like. They need the reward range and rows in time order. Otherwise intervals
        are normal ones, for one look at independent rows.
    reward_range
        Replaces the reward range of the log.
    propensities
        "logged", "estimated" (from the contexts), or "auto": the logged ones unless they are missing or do not match
        the actions. With estimates, `result.sensitivity` gives the result if the true odds are off by at most a factor
        Γ, and the Γ at which the verdict changes.
    segments, rows_per_day
        With several policies: a label per row or a context column, to compare the policies in each segment; and the
        number of logged rows per day, to estimate the days until a decision.
    metrics
        Several columns to judge by, by name: `{"clicks": "reward", "complaints": Metric(column, fewer_is_better=True,
        at_most_worse=0.01)}`. A column is an array, "reward", the name of a context column, or a `Metric`. Intervals
        of all metrics hold jointly.
    control, control_share
        With `baseline="control"`: the column of 0 and 1 that says which rows a control group decided (an array, or the
        name of a context column; None: "control"), and the chance of being in it (None: the share of rows; needed for
        `at_any_time`). The policy "logged" is then the service that made the other rows.
    levels
        Where `switch-dr` and `dr-shrinkage` cut weights: at the theory's levels, or at those that SLOPE chooses, which
        often have a smaller error and a larger bias; their intervals ignore the bias.
    truncate
        For rewards without a range, such as revenue: those beyond these two ends count as the ends, which are then the
        range. A warning says how many they are and what the policy earns beyond them.

    Returns
    -------
    Evaluation, Candidates or Metrics
        One policy: its estimates, diagnostics and warnings, and the difference from the baseline. If the log does not
        cover what the policy does, intervals are widened by what the missing part could earn. Several policies: joint,
        anytime-valid intervals, the leader, policies that are worse with confidence, and the number of rows needed to
        decide.
    """
    several, learner, original, cut = as_candidates(policy), policy, as_evaluated_log(log, reward_range), None
    if truncate is not None:
        if several is not None or metrics is not None or reward_range is not None:
            raise InvalidInput(
                "truncate: found several policies, metrics or a reward_range as well, expected one policy"
            )
        original, cut = truncated(original, truncate)
        log = original
    if asks_for_control_group(original, baseline, control):
        of_group = {"control": control, "share": control_share, "at_any_time": at_any_time or several is not None}
        asked = [policy] if several is None else list(several.values())
        log, found = with_control_group(original, asked, **of_group)
        policy, baseline = found[0], CONTROL
        several = None if several is None else dict(zip(several, found, strict=True))
    if metrics is not None:
        from o2pl.evaluation.metrics import evaluate_metrics

        if several or levels != "theory" or any(one is not None for one in (segments, estimators, rows_per_day)):
            raise InvalidInput(
                "metrics: found several policies, segments, estimators, levels or rows_per_day as well, expected one"
                " policy and perhaps a baseline"
            )
        choices: Any = {"at_any_time": at_any_time, "reward_range": reward_range, "propensities": propensities}
        return evaluate_metrics(log, policy, metrics, baseline=baseline, delta=delta, seed=seed, **choices)
    if several is not None:
        if estimators is not None or propensities == "estimated" or levels != "theory":
            raise InvalidInput(
                "policy: found several policies with estimators, levels or estimated propensities, expected one policy"
            )
        if baseline is not None:
            several[baseline if isinstance(baseline, str) else "baseline"] = baseline
        of_log: Any = {"delta": delta, "reward_range": reward_range, "seed": seed}
        return evaluate_candidates(log, several, segments=segments, rows_per_day=rows_per_day, **of_log)
    check_interval_delta(delta)
    if segments is not None:
        raise InvalidInput(
            "segments: found with one policy, expected several policies: evaluate(log, {name: policy, ...})"
        )
    if levels not in ("theory", "slope"):
        raise InvalidInput(f"levels: found {levels!r}, expected 'theory' or 'slope'")
    if propensities not in ("auto", "logged", "estimated"):
        raise InvalidInput(f"propensities: found {propensities!r}, expected 'auto', 'logged' or 'estimated'")
    given = with_target_names(as_evaluated_log(log, reward_range), policy, baseline)
    if at_any_time and given.reward_range is None:
        raise InvalidInput("reward_range: found None, expected the lowest and highest possible reward, for at_any_time")
    source = evaluated_log(numeric_evaluated_log(given), propensities, seed)
    rows = source.log
    targets = [as_target(policy, rows, contexts=given.contexts)]
    if baseline is not None:
        targets.append(as_target(baseline, rows, "baseline", contexts=given.contexts))
    settings = settings_for_values(policy, rows)
    model = fit_rewards(rows, seed=seed) if len(rows) > 1 else None
    own, *others = columns_for_values(rows, targets, model)
    other = others[0] if others else None
    diagnostics = _diagnose_evaluation(rows, own, settings.clip, source.calibration)
    weights = own.inputs.weights
    overflow = bool(np.isinf(weights).any())
    at_levels = slope_tuned(settings, own.inputs) if levels == "slope" else settings
    raw, errors, left_out = estimated_values(own.inputs, at_levels, estimators, delta)
    estimates = tuple(wider(one, rows.reward_range, diagnostics.missing, overflow) for one in raw)
    headline = headline_value(errors)
    compared = compared_in_evaluation(rows, targets, [own, *others], model, delta, at_any_time, headline == "ips", seed)
    estimates, headline = _judged_in_evaluation(estimates, headline, compared.value, rows.reward_range, at_any_time)
    learned = _evaluated_share_learned_from(learner, original)
    against = np.ones(0) if other is None else other.inputs.weights
    warnings = findings.warnings_of_findings(rows, diagnostics, left_out, overflow, estimates, learned, source.why)
    warnings = (*truncated_by_policy(learner, original.rewards), *warnings)
    if cut is not None and truncate is not None:
        warnings = (truncation_cost(cut, weights, targets[0].name, truncate), *warnings)
    return Evaluation(
        targets[0].name,
        estimates,
        headline,
        compared.baseline,
        compared.difference,
        delta,
        at_any_time,
        diagnostics,
        warnings,
        findings.finding_of_doubt(rows, diagnostics, learned, bool(source.why), None if other is None else against),
        compared.sequence,
        compared.difference_sequence,
        source.why,
        _evaluated_sensitivity(rows, own, other, diagnostics.missing, delta) if source.why and not overflow else None,
        (weights, against),
        compared.kind,
        compared.unsupported,
    )


def compared_in_evaluation(
    rows: Interactions, targets: Sequence[Target], columns: Sequence[PolicyColumns], model: RewardModel | None,
    delta: float, at_any_time: bool, noisy: bool, seed: Seed, shown: Shown | None = None,
) -> Comparison:  # fmt: skip
    """Compare, without the reward model where it only adds noise; at any time with one that is predictable."""
    use: Model | None = running_rewards(rows, seed) if at_any_time else None if noisy else model
    inputs = [one.inputs for one in columns]
    if at_any_time:
        inputs = [one.inputs for one in columns_for_values(rows, targets, use)]
    elif noisy:
        inputs = [one._replace(played=None, expected=None) for one in inputs]
    sides = [Side(target, one) for target, one in zip(targets, inputs, strict=True)]
    return comparison_of_sides(rows, sides, use, delta, at_any_time, shown)


def _judged_in_evaluation(
    estimates: tuple[Valued, ...], headline: str, ends: Ends, possible: RewardRange | None, at_any_time: bool
) -> tuple[tuple[Valued, ...], str]:
    """Give the recommended estimate the interval that is judged by; the others keep normal ones."""
    best = next(one for one in estimates if one.name == headline)
    least, most = possible or (-math.inf, math.inf)
    value = min(max(best.value, least), most)
    low, high = min(ends.low, value), max(ends.high, value)
    if at_any_time:
        return (Valued("any-time", "anytime-valid interval", value, low, high), *estimates), "any-time"
    return tuple(replace(one, value=value, low=low, high=high) if one is best else one for one in estimates), headline


# -- propensities


class TrustedLog(NamedTuple):
    """The log used for the evaluation."""

    log: Interactions
    calibration: Calibration  # calibration of its propensities
    why: str  # why propensities are estimated; empty: they are the logged ones


def evaluated_log(log: Interactions, choice: PropensityChoice, seed: Seed) -> TrustedLog:
    if choice == "logged" and not log.has_propensities:
        raise InvalidInput("propensities: found 'logged' with a log that has none, expected 'auto' or 'estimated'")
    why = "" if log.has_propensities else "the log has none"
    if log.has_propensities:
        tested = propensity_calibration(log.thinned())
        if choice == "auto":
            why = unusable_propensities(log, tested)
        elif choice == "estimated":
            why = "as requested"
        if not why:
            return TrustedLog(log, tested, "")
    log = log.changed(propensities=with_estimated_propensities(log, seed=seed), by_logger=None)
    return TrustedLog(log, propensity_calibration(log.thinned()), why)


def _evaluated_sensitivity(
    log: Interactions, own: PolicyColumns, other: PolicyColumns | None, missing: float, delta: float
) -> Sensitivity:
    """Return the sensitivity of the difference, or of the value without a baseline."""
    low, high = log.reward_range or (-math.inf, math.inf)
    span = high - low
    lost = missing + (0.0 if other is None else value_mass_missing(log, other))
    least, most = (low, high) if other is None else (-span, span)
    return sensitivity(
        comparison_rows(log, own, other),
        delta,
        least,
        most,
        lost * span if lost else 0.0,
        one_more=comparison_one_more(log, own, other),
    )


# -- the log


def _diagnose_evaluation(
    log: Interactions, columns: PolicyColumns, clip: float, calibration: Calibration
) -> Diagnostics:
    weights, kept = columns.inputs.weights, log.thinned_rows()
    level = clip if math.isfinite(clip) else EstimatorSettings.theory(len(log)).clip
    points = np.unique(np.geomspace(1, len(log), 200).astype(np.int64))  # the 1st, …, nth largest weight
    return Diagnostics(
        len(log),
        columns.inputs.effective_sample_size,
        columns.inputs.mean(weights),
        diagnostics_of_weight_tail(weights),
        level,
        diagnostics_of_clip_fraction(weights, level),
        value_mass_missing(log, columns),
        diagnostics_of_overlap(log, columns.mass, weights),
        calibration,
        diagnostics_of_drift(log.thinned(), (clip_weights(weights, level) * log.rewards)[kept]),
        np.stack([points / len(log), np.partition(weights, len(log) - points)[len(log) - points]]),
    )


def _evaluated_share_learned_from(policy: object, log: Interactions) -> float:
    """Return the fraction of the log that the learner's own log starts or ends with, by actions and propensities."""
    if not isinstance(policy, BanditEstimator) or policy._engine is None:
        return 0.0
    own = policy.log_
    n, played = min(len(own), len(log)), own.actions
    if own.action_names != log.action_names and own.action_names and log.action_names:
        played = places_of_action_names(own.action_names, log.action_names)[played]
    parts = (slice(0, n), slice(len(own) - n, None)), (slice(0, n), slice(len(log) - n, None))
    same = any(
        np.array_equal(own.propensities[mine], log.propensities[theirs])
        and np.array_equal(played[mine], log.actions[theirs])
        for mine in parts[0]
        for theirs in parts[1]
    )
    return n / len(log) if same else 0.0
