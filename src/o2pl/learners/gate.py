"""Whether a learned policy may replace another: a lower bound on what it gains, valid whenever one looks."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.interactions import Interactions
from o2pl.objectives.improvement import improvement_values
from o2pl.objectives.weights import policy_weights
from o2pl.protocols import Floats
from o2pl.rows import ActionSets
from o2pl.theory.betting import betting_lower
from o2pl.validation import check_number


def improvement_bound(learner: Any, rows: Interactions, baseline: Any, delta: float) -> float:
    """With probability ≥ 1 - δ, V(learner) - V(baseline) is above this, in rewards; for rows not learned from.

    The bound after each row holds for all rows at once; against "logged" it is for the mean of the loggers so far.
    """
    check_number("delta", delta, 0, below=1, open_low=True)
    if not len(rows):
        raise InvalidInput("rows: found none, expected rows that the policy has not learned from")
    low, high = learner.reward_range
    n_actions = getattr(learner, "n_actions_", None)
    own, other = _weights(learner, rows, n_actions), _weights(baseline, rows, n_actions)
    values = improvement_values(own, other, rows.rewards, low, high)
    bounds = 2 * betting_lower((1 + values) / 2, delta, not isinstance(baseline, str) or baseline != "logged") - 1
    return float(bounds[-1] * (high - low))


def _weights(policy: Any, rows: Interactions, n_actions: int | None) -> Floats:
    if isinstance(policy, str) and policy == "logged":
        return np.ones(len(rows))
    if isinstance(policy, str) and policy == "uniform" and not np.issubdtype(rows.actions.dtype, np.floating):
        contexts = rows.contexts
        choices: Any = contexts.sizes if isinstance(contexts, ActionSets) else n_actions
        likely = np.broadcast_to(1 / choices, len(rows)).astype(np.float64)
    elif hasattr(policy, "_likelihoods"):
        likely = policy._likelihoods(rows.contexts, rows.actions)
    else:
        raise InvalidInput(f"baseline: found {policy!r}, expected 'logged', 'uniform' (discrete actions) or a learner")
    return policy_weights(likely, rows.propensities)
