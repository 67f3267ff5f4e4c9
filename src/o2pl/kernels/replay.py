"""Adam steps of a linear softmax on a window of rows, in one call: the paper's replay."""

from __future__ import annotations

from o2pl import _core
from o2pl.data.interactions import Interactions
from o2pl.features.plan import FeaturePlan, planned_features
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.oracles.adam import Adam
from o2pl.policies.softmax import Softmax
from o2pl.protocols import Array, Floats, Policy, State


def replay_adam(
    policy: Policy, objective: Pessimistic, plan: FeaturePlan | None, oracle: Adam, rows: Interactions, params: Floats,
    kept: State,
) -> tuple[Floats, State] | None:  # fmt: skip
    """Return new parameters and moments, like `oracle.step`; None if the parts are not supported."""
    if type(policy) is not Softmax or plan is None:
        return None
    new: dict[str, Array] = {name: array.copy() for name, array in kept.items()}
    params = params.copy()
    _core.replay(
        planned_features(plan, rows.contexts), rows.actions, rows.losses, rows.propensities, policy.n_actions,
        objective.numbers, params, new["first"], new["second"], new["steps"], oracle.steps, oracle.step_size,
    )  # fmt: skip
    return params, new
