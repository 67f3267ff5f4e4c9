"""Conversion between logs and the bandit feedback dictionary of the Open Bandit Pipeline (OBP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.evaluated_logs import numeric_evaluated_log
from o2pl.protocols import Floats
from o2pl.validation import RewardRange


def from_obp(feedback: Mapping[str, Any], reward_range: RewardRange | None = None) -> Interactions:
    """Convert OBP bandit feedback (context, action, reward, pscore) to a log. `position` becomes a context column."""
    lacking = [name for name in ("context", "action", "reward", "pscore") if feedback.get(name) is None]
    if lacking:
        raise InvalidInput(f"bandit feedback: found no {lacking[0]!r}, expected context, action, reward and pscore")
    context = np.asarray(feedback["context"])
    if feedback.get("position") is not None:
        context = np.column_stack([context, np.asarray(feedback["position"])])
    return Interactions(
        context, feedback["action"], feedback["reward"], feedback["pscore"],
        reward_range=reward_range, n_actions=feedback.get("n_actions"),
    )  # fmt: skip


def to_obp(log: Interactions, pi_b: Floats | None = None, action_context: Floats | None = None) -> dict[str, Any]:
    """Convert a log to OBP bandit feedback. `pi_b`: the logging policy's probabilities of all actions, [n, K].

    Data frame and dictionary contexts become numbers. `expected_reward` is unknown, `position` is None.
    """
    if log.continuous or log.n_actions is None:
        kind = "real-valued actions" if log.continuous else "action sets"
        raise InvalidInput(f"log: found {kind}, expected a fixed number of actions: OBP supports nothing else")
    n, K = len(log), log.n_actions
    numbers = numeric_evaluated_log(log).contexts
    probabilities = None if pi_b is None else np.asarray(pi_b, np.float64)
    if probabilities is not None and probabilities.shape != (n, K):
        raise InvalidInput(f"pi_b: found shape {probabilities.shape}, expected {(n, K)}")
    return {
        "n_rounds": n,
        "n_actions": K,
        "context": np.asarray(numbers, np.float64),
        "action_context": np.eye(K) if action_context is None else np.asarray(action_context),
        "action": log.actions,
        "position": None,
        "reward": log.rewards,
        "expected_reward": None,
        "pi_b": None if probabilities is None else probabilities[:, :, None],
        "pscore": log.propensities,
    }
