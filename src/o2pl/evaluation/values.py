"""Estimates of a policy's value from a log: columns, estimators, and intervals that include what the log misses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.estimators import (
    ESTIMATORS,
    EstimatorInput,
    EstimatorSettings,
    Stream,
    balanced_estimator_weights,
    find_estimator,
)
from o2pl.evaluation.intervals import SampleMoments, normal_interval_from_moments
from o2pl.evaluation.results import Valued
from o2pl.evaluation.unshown import Model
from o2pl.learners.base import BanditEstimator
from o2pl.learners.targets import Target
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.objectives.weights import weight_of
from o2pl.protocols import Floats
from o2pl.validation import RewardRange, to_reward

_NOISIER = 1.1  # DR's interval may be wider than that of IPS by this factor


# -- columns


class PolicyColumns(NamedTuple):
    """The columns of one policy on a log."""

    inputs: EstimatorInput
    mass: Floats | None  # mean π(a|x) of each action, [K] or more; None: unknown


def columns_for_values(log: Interactions, targets: Sequence[Target], model: Model | None) -> list[PolicyColumns]:
    """Return the columns of all policies in one pass; they share the model's predictions."""
    n = len(log)
    played = None if model is None else np.empty(n)
    ratios = [np.empty(n) for _ in targets]  # π(a_s|x_s), then the weights in their place: memory, for many targets
    expected: list[Floats | None] = [None if model is None else np.empty(n) for _ in targets]
    mass: list[Floats | None] = [None if log.n_actions is None else np.zeros(log.n_actions) for _ in targets]
    for rows in log.blocks():
        table = None
        if model is not None and played is not None:
            played[rows], table = model.table(rows)
        for j, target in enumerate(targets):
            does = target.on(rows)
            ratios[j][rows] = does.played
            column = expected[j]
            if model is not None and column is not None:
                value = model.expected(does, rows, table)
                if value is None:
                    expected[j] = None
                else:
                    column[rows] = value
            mass[j] = _added_mass_for_values(mass[j], does.probabilities)
    found = []
    for own, value, total in zip(ratios, expected, mass, strict=True):
        balanced = None
        if log.by_logger is not None and log.loggers is not None:
            balanced = balanced_estimator_weights(own, log.by_logger, log.loggers)
        with np.errstate(over="ignore"):  # an overflowed weight is ∞
            own[:] = weight_of(own, log.propensities)
        modelled = None if value is None else played
        inputs = EstimatorInput(log.rewards, own, modelled, value, balanced, log.row_weights)
        found.append(PolicyColumns(inputs, None if total is None else total / n))
    return found


def _added_mass_for_values(mass: Floats | None, probabilities: Floats | None) -> Floats | None:
    if mass is None or probabilities is None:
        return None
    some = probabilities.sum(axis=0)
    if len(some) > len(mass):  # actions of the policy that are not in the log
        mass = np.pad(mass, (0, len(some) - len(mass)))
    return np.asarray(mass + some)


def settings_for_values(policy: object, log: Interactions) -> EstimatorSettings:
    """Return a learner's own clip, baseline and penalty; otherwise the theory's clip and no penalty."""
    plain = EstimatorSettings.theory(len(log))
    if not isinstance(policy, BanditEstimator) or not hasattr(policy, "penalty") or log.reward_range is None:
        return plain  # `Bandit` has no penalty
    known = {name: getattr(policy, name) for name in ("penalty", "clip", "baseline", "l2", "p", "beta", "delta")}
    objective = Pessimistic(**known)
    n, low, high = len(log), *log.reward_range
    baseline = float(to_reward(objective.level(log.losses), log.reward_range))
    return EstimatorSettings(objective.alpha(n), plain.switch, plain.shrinkage, baseline, objective.phi(n), high - low)


# -- estimates


def estimated_values(
    columns: EstimatorInput, settings: EstimatorSettings, names: Sequence[str] | None, delta: float
) -> tuple[list[Valued], dict[str, float], dict[str, str]]:
    """Return the estimates that the columns allow, their standard errors, and why the others are missing."""
    found, errors, left_out = [], {}, {}
    for name in names or ESTIMATORS:
        estimator = find_estimator(name)
        lacking = [need for need in estimator.needs if getattr(columns, need) is None]
        lacking += ["penalty"] if name == "pessimistic" and settings.penalty is None else []
        if lacking:
            if names is not None:
                raise InvalidInput(f"{name}: found no {lacking[0]} for this log and policy, expected one")
            continue
        try:
            value, error, n, one_more = Stream(name, settings).add(columns).estimate()
        except InvalidInput as problem:
            left_out[name] = str(problem)
            continue
        variance = error**2 * n if n > 1 else 0.0
        low, high = normal_interval_from_moments(SampleMoments(n, value, variance), delta, one_more)
        found.append(Valued(name, estimator.says, value, low, high))
        errors[name] = math.sqrt(variance / n)
    if not found:
        raise InvalidInput("; ".join(dict.fromkeys(left_out.values())))
    return found, errors, left_out


def wider(one: Valued, ends: RewardRange | None, missing: float, overflow: bool) -> Valued:
    """Widen an interval: mass that the log does not cover may earn any reward; with an unknown range, anything.

    The interval is clipped to the reward range.
    """
    if overflow or (missing > 0 and ends is None):
        return Valued(one.name, one.says, one.value, -math.inf, math.inf)
    if ends is None or math.isinf(one.low):
        return one
    span = ends[1] - ends[0]
    least, most = (-span, span) if one.name == "difference" else ends
    low, high = max(one.low - missing * span, least), min(one.high + missing * span, most)
    if low > high:  # entirely outside: the interval is wrong
        low, high = least, most
    return Valued(one.name, one.says, one.value, low, high)


def headline_value(errors: dict[str, float]) -> str:
    """Return the recommended estimate: DR, unless its model adds noise and IPS has less; else the first one.

    errors: standard error of each estimate.
    """
    noise = {name: error or math.inf for name, error in errors.items()}  # without variance, nothing is known
    if "ips" in noise and math.inf > noise.get("dr", 0.0) > _NOISIER * noise["ips"]:
        return "ips"
    return next(name for name in ("dr", "snips", "clipped", *noise) if name in noise)


def value_mass_never_logged(log: Interactions, columns: PolicyColumns) -> float:
    """Return the policy's probability mass on actions that were never logged."""
    if columns.mass is None:
        return 0.0
    plays = np.bincount(log.actions, minlength=len(columns.mass))
    return float(columns.mass[plays == 0].sum())


def value_mass_missing(log: Interactions, columns: PolicyColumns) -> float:
    """Return the mass on actions that were never logged, or 1 minus the mean weight beyond three standard errors."""
    weights, never = columns.inputs.contributions(columns.inputs.weights), value_mass_never_logged(log, columns)
    if len(log) < 2 or not np.isfinite(weights).all():
        return never
    spread = 3 * float(weights.std(ddof=1)) / math.sqrt(len(log))
    return float(np.clip(max(never, 1 - float(weights.mean()) - spread), 0.0, 1.0))
