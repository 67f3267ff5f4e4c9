"""Comparison of two policies on one log: differences row by row, so that common noise cancels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.bounds import Kind
from o2pl.evaluation.gains import Ends, Gains, ends_of_gains, gains_of, running_gains
from o2pl.evaluation.intervals import one_more_row_for_interval
from o2pl.evaluation.results import Valued
from o2pl.evaluation.sensitivity import Linear
from o2pl.evaluation.sequences import ConfidenceSequence
from o2pl.evaluation.support import largest_supported_weight, support_of
from o2pl.evaluation.unshown import Model, Side, Unshown, unshown_of
from o2pl.evaluation.values import PolicyColumns
from o2pl.protocols import Floats


class Comparison(NamedTuple):
    value: Ends  # of the policy
    sequence: ConfidenceSequence | None = None  # of its value
    baseline: Valued | None = None
    difference: Valued | None = None
    difference_sequence: ConfidenceSequence | None = None
    kind: Kind = "none"  # of the interval of the difference, without a baseline of the value
    unsupported: float = 0.0  # share of the decisions that the log hardly shows


class Shown:
    """What a log shows of some comparisons, the same for every reward. Found when it is first asked for."""

    def __init__(self, log: Interactions) -> None:
        self.log, self.support = log, support_of(log)
        self._unshown: dict[str, Unshown | None] = {}

    def gains(
        self, log: Interactions, name: str, sides: Sequence[Side], model: Model | None, predictable: bool
    ) -> Gains:
        """Return the terms of a comparison. log: the rows, with any rewards."""
        if name not in self._unshown and model is not None:
            weighed = [side for side in sides if not side.logged]
            W = np.sum([side.sign * side.inputs.weights for side in weighed], axis=0) if weighed else np.zeros(len(log))
            fine = bool(np.isfinite(W).all())
            self._unshown[name] = (
                unshown_of(self.log, weighed, largest_supported_weight(W), self.support) if fine else None
            )
        return gains_of(log, sides, model, self.support, predictable, unshown=self._unshown.get(name))


def comparison_of_sides(
    log: Interactions, sides: Sequence[Side], model: Model | None, delta: float, at_any_time: bool,
    shown: Shown | None = None,
) -> Comparison:  # fmt: skip
    """Return the interval of the first policy's value and, with a second, of their difference.

    shown: of the same sides and rows, if several rewards are compared.
    """
    shown = shown or Shown(log)
    own, *others = sides
    alone = shown.gains(log, "policy", [own], model, at_any_time)
    value = ends_of_gains(alone.sums, delta, at_any_time)
    sequence = running_gains(alone, delta) if at_any_time else None
    if not others:
        return Comparison(value, sequence, kind=value.kind, unsupported=alone.sums.unsupported)
    other = others[0]._replace(sign=1)
    base = ends_of_gains(shown.gains(log, "baseline", [other], model, at_any_time).sums, delta, at_any_time)
    gap = shown.gains(log, "difference", [own, other._replace(sign=-1)], model, at_any_time)
    gain = ends_of_gains(gap.sums, delta, at_any_time)
    if (own.logged and other.logged) or np.array_equal(own.inputs.weights, other.inputs.weights):
        gain = gain._replace(estimate=0.0, low=0.0, high=0.0)  # the same policy
    return Comparison(
        value, sequence, Valued(other.target.name, "", *base[:3]),
        Valued("difference", "policy minus baseline", *gain[:3]), running_gains(gap, delta) if at_any_time else None,
        gain.kind, gap.sums.unsupported,
    )  # fmt: skip


def comparison_rows(log: Interactions, own: PolicyColumns, other: PolicyColumns | None) -> Linear:
    """Return DR of the policy (minus that of the baseline, if there is one) as a function of 1/q*, row by row.

    Without a reward model, the model's place is taken by the SNIPS value of the policy. For the logger it is the
    reward.
    """
    base, slope = _comparison_rows(log, own)
    if other is not None:
        theirs = _comparison_rows(log, other)
        base, slope = base - theirs[0], slope - theirs[1]
    if log.row_weights is not None:  # as `EstimatorInput.contributions`
        ratio = log.row_weights / log.row_weights.mean()
        mean = float(np.mean(ratio * (base + slope / log.propensities)))
        base, slope = mean + ratio * (base - mean), ratio * slope
    return Linear(base, slope, log.propensities, bool(log.continuous))


def comparison_one_more(log: Interactions, own: PolicyColumns, other: PolicyColumns | None = None) -> float:
    """Return `one_more_row_for_interval` of DR of the policy, or of the difference; 0 if a weight overflowed."""
    weights = own.inputs.weights if other is None else own.inputs.weights - other.inputs.weights
    if not np.isfinite(weights).all():
        return 0.0  # the interval will be infinite
    ratio = 1.0 if log.row_weights is None else log.row_weights / log.row_weights.mean()
    model = own.inputs.played
    return one_more_row_for_interval(
        weights * ratio, log.rewards - (own.inputs.mean(log.rewards) if model is None else model)
    )


def _comparison_rows(log: Interactions, own: PolicyColumns) -> tuple[Floats, Floats]:
    inputs = own.inputs
    if (inputs.weights == 1).all():
        return log.rewards, np.zeros(len(log))
    likelihoods = inputs.weights * log.propensities
    if inputs.expected is not None and inputs.played is not None:
        return inputs.expected, likelihoods * (log.rewards - inputs.played)
    total = inputs.mean(inputs.weights)
    value = inputs.mean(inputs.weights * log.rewards) / total if total > 0 else inputs.mean(log.rewards)
    return np.full(len(log), value), likelihoods * (log.rewards - value)
