"""Comparison of two policies on one log: differences row by row, so that common noise cancels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from o2pl.evaluation.estimators import EstimatorInput, EstimatorSettings, row_values
from o2pl.evaluation.intervals import normal_interval, one_more_row
from o2pl.evaluation.results import Valued
from o2pl.evaluation.sensitivity import Linear
from o2pl.evaluation.sequences import (
    ConfidenceSequence,
    confidence_sequence,
    difference_sequence,
    weighted_sequence,
)
from o2pl.evaluation.values import PolicyColumns, missing_mass, sound, wider
from o2pl.interactions import Interactions
from o2pl.protocols import Floats


class Comparison(NamedTuple):
    baseline: Valued | None = None
    difference: Valued | None = None
    sequence: ConfidenceSequence | None = None  # of the difference


def compare(
    log: Interactions,
    own: PolicyColumns,
    other: PolicyColumns,
    names: tuple[str, str],
    settings: EstimatorSettings,
    delta: float,
    at_any_time: bool,
    missing: float,
    noisy_model: bool,
) -> Comparison:
    """Compare a policy with a baseline. names: their names; missing: probability mass not covered by the log."""
    name = names[1]
    weights, against = own.inputs.weights, other.inputs.weights
    mine, theirs = (_comparable(given.inputs, settings, noisy_model) for given in (own, other))
    overflow = not (np.isfinite(weights).all() and np.isfinite(against).all())
    base = Valued(name, "", float(theirs.mean()), *normal_interval(theirs, delta, one_more(log, other)))
    lost = missing_mass(log, other)
    base = wider(base, log.reward_range, lost, overflow)
    gap = mine - theirs
    if at_any_time and log.reward_range is not None:
        kept = log.thinned_rows()
        both = (weights[kept], against[kept])
        sequence = difference_sequence(log.rewards[kept], log.reward_range, *both, delta, "logged" in names)
        span = log.reward_range[1] - log.reward_range[0]
        low, high = sound(sequence, (-span, span), overflow)
        base = Valued(base.name, "", base.value, *value_sequence(log, name, against, delta).last)
        return Comparison(base, Valued("difference", "policy minus baseline", float(gap.mean()), low, high), sequence)
    low, high = normal_interval(gap, delta, one_more(log, own, other))
    if not gap.any():  # identical policies
        low = high = 0.0
    difference = Valued("difference", "policy minus baseline", float(gap.mean()), low, high)
    return Comparison(base, wider(difference, log.reward_range, missing + lost, overflow), None)


def linear_rows(log: Interactions, own: PolicyColumns, other: PolicyColumns | None) -> Linear:
    """Return DR of the policy (minus that of the baseline, if there is one) as a function of 1/q*, row by row.

    Without a reward model, the model's place is taken by the SNIPS value of the policy. For the logger it is the
    reward.
    """
    base, slope = _linear(log, own)
    if other is not None:
        theirs = _linear(log, other)
        base, slope = base - theirs[0], slope - theirs[1]
    if log.row_weights is not None:  # as `EstimatorInput.contributions`
        ratio = log.row_weights / log.row_weights.mean()
        mean = float(np.mean(ratio * (base + slope / log.propensities)))
        base, slope = mean + ratio * (base - mean), ratio * slope
    return Linear(base, slope, log.propensities, bool(log.continuous))


def one_more(log: Interactions, own: PolicyColumns, other: PolicyColumns | None = None) -> float:
    """Return `one_more_row` of DR of the policy, or of its difference from a baseline; 0 if a weight overflowed."""
    weights = own.inputs.weights if other is None else own.inputs.weights - other.inputs.weights
    if not np.isfinite(weights).all():
        return 0.0  # the interval will be infinite
    ratio = 1.0 if log.row_weights is None else log.row_weights / log.row_weights.mean()
    model = own.inputs.played
    return one_more_row(weights * ratio, log.rewards - (own.inputs.mean(log.rewards) if model is None else model))


def _linear(log: Interactions, own: PolicyColumns) -> tuple[Floats, Floats]:
    inputs = own.inputs
    if (inputs.weights == 1).all():
        return log.rewards, np.zeros(len(log))
    likelihoods = inputs.weights * log.propensities
    if inputs.expected is not None and inputs.played is not None:
        return inputs.expected, likelihoods * (log.rewards - inputs.played)
    total = inputs.mean(inputs.weights)
    value = inputs.mean(inputs.weights * log.rewards) / total if total > 0 else inputs.mean(log.rewards)
    return np.full(len(log), value), likelihoods * (log.rewards - value)


def _comparable(columns: EstimatorInput, settings: EstimatorSettings, noisy_model: bool) -> Floats:
    """Return row values of an estimator that works for both policies: DR, SNIPS, or clipped IPS."""
    if (columns.weights == 1).all():
        return columns.contributions(columns.rewards)  # the logger: no correction needed
    if not np.isfinite(columns.weights).all() or not columns.weights.any():
        return row_values("clipped", columns, settings)
    return row_values("snips" if columns.expected is None or noisy_model else "dr", columns, settings)


def value_sequence(log: Interactions, name: str, weights: Floats, delta: float) -> ConfidenceSequence:
    """Return the confidence sequence of V(π). For a logger that learned: of the mean of its values so far."""
    assert log.reward_range is not None
    kept = log.thinned_rows()
    rewards, weights = log.rewards[kept], weights[kept]
    if name == "logged":
        return confidence_sequence(rewards, delta, *log.reward_range, common=False)
    return weighted_sequence(weights, rewards, delta, log.reward_range)
