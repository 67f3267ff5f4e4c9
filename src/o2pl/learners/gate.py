"""Whether a policy may replace another: a lower bound on what it gains, valid whenever one looks, and the reason."""

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

_SHORT = 0.05  # of the weights' mean below 1, beyond chance: so much of a policy is not in the log
_FEW = 30  # effective rows
EXPLORE = (
    "Let the learner explore, so that its log shows other actions too: exploration=0.05 keeps each at 0.05/K or"
    " more, for little reward (the guide has the price list)"
)


@dataclass(frozen=True)
class DeployVerdict:
    """Whether a policy may be deployed in a baseline's place: true or false, and why. Printed, it is the reason."""

    safe: bool
    estimate: float  # of the gain over the baseline, in rewards; nan where the log cannot say
    bound: float  # the gain is at least this, with the confidence asked for
    effective: float  # rows of equal weight that the log is worth for the comparison
    reason: str

    def __bool__(self) -> bool:
        return self.safe

    def __str__(self) -> str:
        return f"{'safe' if self.safe else 'not safe'} to deploy: {self.reason}"


def judge(
    policy: Any, rows: Interactions, baseline: Any, delta: float, contexts: Any = None, tolerance: float = 0.0
) -> DeployVerdict:
    """Of rows that the policy has not learned from. contexts: as the baseline reads them, where the rows' are others.

    With probability ≥ 1 - δ, V(policy) - V(baseline) is above the bound. The bound after each row holds for all rows at
    once; against "logged" it is for the mean of the loggers so far.
    """
    check_number("delta", delta, 0, below=1, open_low=True)
    if not len(rows):
        raise InvalidInput("rows: found none, expected rows that the policy has not learned from")
    if rows.reward_range is None:
        raise InvalidInput("reward_range: found None, expected the lowest and highest reward there can be")
    low, high = rows.reward_range
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
    """From the bound and from the weights of both policies. doubt: why no number must be acted on."""
    safe = not doubt and bound > -tolerance
    effective = min(effective_sample_size(own), effective_sample_size(other))
    named = f"the baseline ({baseline})" if baseline != "baseline" else "the baseline"
    sure = f"with {1 - delta:.0%} confidence"
    rows = f"{len(own):,} rows, worth {effective:,.0f}"
    found = f"estimated gain over {named} {estimate:.4g}, at least {bound:.4g} {sure}; {rows}"
    why = "" if safe else _unsupported(other, named) or _unsupported(own, "the policy")
    if safe:
        reason = found
    elif doubt or why:
        reason = f"{'; '.join(part for part in (doubt, why) if part)}.{f' {EXPLORE}.' if why else ''} ({found})"
    elif estimate < 0:
        reason = f"it seems to be worse. ({found})"
    else:
        reason = f"the log does not show a gain that is surely above {0 - tolerance:g}: it takes more rows. ({found})"
    return DeployVerdict(safe, estimate, bound, effective, reason)


def _unsupported(weights: Floats, who: str) -> str:
    """That the log does not show what a policy does; empty where it does."""
    mean = float(weights.mean())
    spread = 3 * float(weights.std()) / math.sqrt(len(weights)) if np.isfinite(weights).all() else 0.0
    effective = effective_sample_size(weights)
    short = mean < 1 - _SHORT - min(spread, 1 - 2 * _SHORT)
    if short or effective < min(_FEW, len(weights) / 50):
        return (
            f"the log has no support for {who}: much of what that would do was never played (weights average {mean:.2g}"
            f" where 1 is expected, {len(weights):,} rows are worth {effective:,.0f})"
        )
    return ""


def _mean(weights: Floats, rewards: Floats) -> float:
    """Σ w r / Σ w; nan where no row has weight."""
    total = float(weights.sum())
    return float(weights @ rewards) / total if 0 < total < math.inf else math.nan


def _weights(target: Target, rows: Interactions) -> Floats:
    likely = np.empty(len(rows))
    for some in rows.blocks():
        likely[some] = target.on(some).played
    return policy_weights(likely, rows.propensities)
