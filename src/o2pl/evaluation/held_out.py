"""What held-out rows say of policies that were learned without them: values, gains, and the judgement of each.

Each part of the held-out rows has its own reward model and its own support, fitted within it. What is known of a policy
from one part is an array of columns, which can be stored; parts are put together before anything is judged.

Parts are not independent: the policy that is judged on one part has learned from the others. Where no action matters,
the mean Σ_k ε_k δ(ε_j, j ≠ k) of the noise ε_k of part k and what was learned from the others has every product ε_j ε_k
twice, and so twice the variance that the rows show. What was learned from all parts alike has none of that. So the
distance of an end from the mean grows by the factor √(1 + s_d²/s²), with s² the variance of the terms and s_d² that of
their difference from the terms of another part's policy on the same row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.calibration import FEWEST, propensity_calibration
from o2pl.evaluation.gains import Ends, Gains, ends_of_gains, gains_of
from o2pl.evaluation.intervals import one_more_row_for_interval
from o2pl.evaluation.judgement import Judgement, judge
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.support import support_of
from o2pl.evaluation.unshown import Side
from o2pl.evaluation.unusable import unusable_log
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import Target
from o2pl.protocols import Floats
from o2pl.special import ndtri

_TESTED = 50_000  # last rows that are searched for faults
_COLUMNS = ("estimate", "lower", "upper", "more", "less", "whole", "surprises")


class HeldOut:
    """One part of the held-out rows, with contexts as numbers. share: of all held-out rows."""

    def __init__(self, rows: Interactions, share: float = 1.0) -> None:
        self.rows, self.share, self.model, self.support = rows, share, fit_rewards(rows), support_of(rows)

    def values(self, policy: Target, against: Target | None = None) -> Floats:
        """Return the columns of V(policy), or of V(policy) - V(against). [9, n]"""
        targets = [policy] if against is None else [policy, against]
        columns = columns_for_values(self.rows, targets, self.model)
        sides = [Side(t, c.inputs, s) for t, c, s in zip(targets, columns, (1, -1), strict=False)]
        found = gains_of(self.rows, sides, self.model, self.support, share=self.share)
        floors = np.repeat(np.array(found.floors)[:, None], len(self.rows), axis=1)
        return np.concatenate([np.stack([getattr(found, name) for name in _COLUMNS]), floors])

    def estimates(self, policy: Target) -> Floats:
        """Return the terms of the estimate of V(policy). [n]"""
        return np.asarray(self.values(policy)[0])


def gains_held_out(parts: Sequence[Floats], log: Interactions, difference: bool = False) -> Gains:
    """Put the parts together. log: their rows, in this order."""
    values = np.concatenate(parts, axis=1)
    columns: dict[str, Any] = dict(zip(_COLUMNS, values, strict=False))
    low, high = log.reward_range or (float(log.rewards.min()), float(log.rewards.max()))
    span = high - low if high > low else 1.0
    return Gains(
        **columns, rewards=(log.rewards - low) / span, largest=float(np.abs(columns["surprises"]).max()),
        weights=(columns["whole"],) * (not difference),
        floors=(float(values[-2].max()), float(values[-1].max())), ends=(-1.0, 1.0) if difference else (0.0, 1.0),
        scale=(0.0 if difference else low, span), known_range=log.reward_range is not None,
        row_weights=log.row_weights, kept=None if log.row_weights is None else log.thinned_rows(),
    )  # fmt: skip


def over_the_logger_held_out(value: Gains, log: Interactions) -> Gains:
    """Return the gain over the logging policy from a value: its rewards are subtracted row by row."""
    low, span = value.scale
    u = (log.rewards - low) / span
    return replace(
        value, estimate=value.estimate - u, lower=value.lower - u, upper=value.upper - u, whole=value.whole - 1.0,
        floors=(value.floors[0] + 1.0, value.floors[1]), ends=(-1.0, 1.0), scale=(0.0, span),
    )  # fmt: skip


class Evidence(NamedTuple):
    """A policy on held-out rows."""

    value: Ends
    pessimistic: float  # value by which policies are chosen: the lower end's normal bound, with one more row
    pessimistic_gain: float  # the same of the gain
    judgement: Judgement  # of its gain over the logging policy, or over the given incumbent


def held_out_evidence(
    name: str, parts: Sequence[Floats], log: Interactions, delta: float, doubt: str = "",
    baseline: str = "the logging policy", differences: Sequence[Floats] = (), others: Floats | None = None,
) -> Evidence:  # fmt: skip
    """Judge a policy from its columns. differences: its columns against the baseline, if that is not the logger.

    others: `estimates` of another part's policy in the same rows, if there are several parts. [n]
    """
    value = gains_held_out(parts, log)
    gain = gains_held_out(differences, log, True) if len(differences) else over_the_logger_held_out(value, log)
    if others is not None:
        value, gain = (replace(one, stretch=_held_out_stretch(one, value.estimate - others)) for one in (value, gain))
    ends = ends_of_gains(gain.sums, delta)
    judgement = judge(
        name, baseline, ends.estimate, ends.low, ends.high, delta=delta, kind=ends.kind, rows=len(log),
        effective=value.sums.effective, unsupported=gain.sums.unsupported, doubt=doubt,
    )  # fmt: skip
    pessimistic = _pessimistic_held_out(value, delta), _pessimistic_held_out(gain, delta)
    return Evidence(ends_of_gains(value.sums, delta), *pessimistic, judgement)


def _held_out_stretch(one: Gains, off: Floats) -> float:
    """Return √(1 + s_d²/s²). off: what the terms differ from those of another part's policy. [n]"""
    spread, apart = (float(one._weighed(terms).var()) for terms in (one.estimate, off))
    return math.sqrt(1 + apart / spread) if math.isfinite(apart) and spread > 0 else 1.0


def _pessimistic_held_out(value: Gains, delta: float) -> float:
    """Return mean - z e - what the log lacks, e² = s²/n + one_more² (`one_more_row_for_interval`), in rewards."""
    lower, n = value._weighed(value.lower), len(value)
    if not np.isfinite(lower).all():
        return -math.inf
    one_more = one_more_row_for_interval(value._multiplied(value.whole) / value.average, value.surprises)
    error = math.hypot(float(lower.std(ddof=1)) / math.sqrt(n), one_more)
    low, span = value.scale
    return low + span * (float(lower.mean()) + float(ndtri(delta / 2)) * error - value.sums.lost)


def held_out_doubts(log: Interactions, estimated: bool = False) -> str:
    """Return why the log cannot tell; empty if there is no reason. log: with contexts as numbers."""
    rows = log[-_TESTED:].thinned()
    if len(rows) < FEWEST:
        return ""
    return unusable_log(rows, propensity_calibration(rows), estimated)
