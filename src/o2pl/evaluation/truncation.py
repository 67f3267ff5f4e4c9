"""Rewards without a range: those beyond chosen ends count as the ends, and what that costs is said.

The value of the truncated reward has a range, so every bound holds for it. What is cut, r - min(max(r, low), high), is
estimated for the policy by its weights: the bias of the truncated value as an estimate of the whole one.
"""

from __future__ import annotations

import math

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.learners.base import BanditEstimator
from o2pl.protocols import Floats
from o2pl.validation import RewardRange, check_pair


def truncated(log: Interactions, ends: RewardRange) -> tuple[Interactions, Floats]:
    """Return the log with rewards within the ends, which are its range, and what was cut from each. [n]"""
    low, high = check_pair("truncate", ends, "lowest", "highest")
    kept = np.clip(log.rewards, low, high)
    if log.reward_range is not None and (log.reward_range[0] >= low and log.reward_range[1] <= high):
        raise InvalidInput(
            f"truncate: found {low:g} to {high:g} for rewards that are from {log.reward_range[0]:g} to"
            f" {log.reward_range[1]:g} already, expected narrower ends"
        )
    return log.changed(rewards=kept, reward_range=(low, high)), log.rewards - kept


def truncated_by_policy(policy: object, rewards: Floats) -> list[str]:
    """Say how many of a log's rewards are beyond the range that a learner without a given range has learned in."""
    if not isinstance(policy, BanditEstimator) or policy._engine is None or policy.reward_range is not None:
        return []
    low, high = policy.reward_range_
    beyond = int(np.count_nonzero((rewards < low) | (rewards > high)))
    if not beyond:
        return []
    return [
        f"The policy has learned from rewards that were clipped to {low:g} to {high:g}, the range of nearly all it has"
        f" seen: {beyond:,} of the {len(rewards):,} rewards of this log are beyond. Estimates count them in full."
    ]


def truncation_cost(cut: Floats, weights: Floats, name: str, ends: RewardRange) -> str:
    """Say how many rewards were cut, and by how much that lowers the policy's value."""
    rows = int(np.count_nonzero(cut))
    said = f"Rewards beyond {ends[0]:g} to {ends[1]:g} count as these ends: {rows:,} of {len(cut):,} rows."
    if not rows or not np.isfinite(weights).all():
        return said
    terms = weights * cut
    error = float(terms.std(ddof=1)) / math.sqrt(len(cut)) if len(cut) > 1 else math.inf
    return (
        f"{said} All values and verdicts are of the truncated rewards; without the cut {name} is worth about"
        f" {float(terms.mean()):+.4g} ± {error:.2g} (standard error, by the logged rewards alone) on top."
    )
