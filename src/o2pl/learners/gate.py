"""Safe deployment: an anytime-valid lower bound on the gain of a policy over a baseline, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.interactions import Interactions
from o2pl.learners.targets import Target, as_target, with_names
from o2pl.objectives.improvement import improvement_values
from o2pl.objectives.weights import effective_sample_size, policy_weights
from o2pl.protocols import Floats
from o2pl.theory.betting import betting_lower
from o2pl.validation import check_number

_SHORT = 0.05  # mean weight this far below 1, beyond chance: the log does not cover the policy
_FEW = 30  # effective rows
EXPLORE = (
    "Let the learner explore, so that its log contains other actions too: exploration=0.05 keeps each at 0.05/K or"
    " more, at a small cost in reward (the guide lists it)"
)


@dataclass(frozen=True)
class DeployVerdict:
    """Whether a policy can replace a baseline: true or false, with the reason. `str` gives the reason."""

    safe: bool
    estimate: float  # estimated gain over the baseline, in rewards; nan if the log cannot say
    bound: float  # lower confidence bound of the gain
    effective: float  # effective sample size of the comparison
    reason: str

    def __bool__(self) -> bool:
        return self.safe

    def __str__(self) -> str:
        return f"{'safe' if self.safe else 'not safe'} to deploy: {self.reason}"


def judge(
    policy: Any, rows: Interactions, baseline: Any, delta: float, contexts: Any = None, tolerance: float = 0.0
) -> DeployVerdict:
    """Test a policy on rows it has not learned from. contexts: raw contexts for the baseline, if they differ.

    With probability ≥ 1 - δ, V(policy) - V(baseline) is above the bound. The bounds after each row hold simultaneously.
    For "logged", the baseline is the mean of the logging policies so far.
    """
    check_number("delta", delta, 0, below=1, open_low=True)
    if not len(rows):
        raise InvalidInput("rows: found none, expected rows that the policy has not learned from")
    if rows.reward_range is None:
        raise InvalidInput("reward_range: found None, expected the lowest and highest possible reward")
    low, high = rows.reward_range
    if rows.row_weights is not None:  # bounds count each row once
        kept = rows.thinned_rows()
        rows, contexts = rows.thinned(), None if contexts is None else contexts[kept]
    rows = with_names(rows, policy, baseline)
    target, against = as_target(policy, rows), as_target(baseline, rows, "baseline", contexts)
    own, other = _weights(target, rows), _weights(against, rows)
    values = improvement_values(own, other, rows.rewards, low, high)
    moving = "logged" in (target.name, against.name)
    bound = float(2 * betting_lower((1 + values) / 2, delta, not moving)[-1] - 1) * (high - low)
    estimate = _mean(own, rows.rewards) - _mean(other, rows.rewards)
    return verdict(estimate, bound, own, other, against.name, delta, tolerance)


def verdict(
    estimate: float, bound: float, own: Floats, other: Floats, baseline: str, delta: float, tolerance: float = 0.0,
    doubt: str = "",
) -> DeployVerdict:  # fmt: skip
    """Return the verdict from the bound and the weights of both policies. doubt: reason to distrust all numbers."""
    safe = not doubt and bound > -tolerance
    effective = min(effective_sample_size(own), effective_sample_size(other))
    named = f"the baseline ({baseline})" if baseline != "baseline" else "the baseline"
    sure = f"with {1 - delta:.0%} confidence"
    rows = f"{len(own):,} rows, effective sample size {effective:,.0f}"
    found = f"estimated gain over {named} {estimate:.4g}, at least {bound:.4g} {sure}; {rows}"
    why = "" if safe else _unsupported(other, named) or _unsupported(own, "the policy")
    if safe:
        reason = found
    elif doubt or why:
        reason = f"{'; '.join(part for part in (doubt, why) if part)}.{f' {EXPLORE}.' if why else ''} ({found})"
    elif estimate < 0:
        reason = f"it appears to be worse. ({found})"
    else:
        reason = (
            f"the log does not show a gain above {0 - tolerance:g} with confidence: more rows are needed. ({found})"
        )
    return DeployVerdict(safe, estimate, bound, effective, reason)


def _unsupported(weights: Floats, who: str) -> str:
    """Return why the log does not cover a policy; empty if it does."""
    mean = float(weights.mean())
    spread = 3 * float(weights.std()) / math.sqrt(len(weights)) if np.isfinite(weights).all() else 0.0
    effective = effective_sample_size(weights)
    short = mean < 1 - _SHORT - min(spread, 1 - 2 * _SHORT)
    if short or effective < min(_FEW, len(weights) / 50):
        return (
            f"the log does not support {who}: many of its actions were never played (weights average {mean:.2g}"
            f" where 1 is expected, {len(weights):,} rows have an effective sample size of {effective:,.0f})"
        )
    return ""


def _mean(weights: Floats, rewards: Floats) -> float:
    """Return Σ w r / Σ w; nan if all weights are 0."""
    total = float(weights.sum())
    return float(weights @ rewards) / total if 0 < total < math.inf else math.nan


def _weights(target: Target, rows: Interactions) -> Floats:
    likely = np.empty(len(rows))
    for some in rows.blocks():
        likely[some] = target.on(some).played
    return policy_weights(likely, rows.propensities)
