"""The fused values, registered."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.features.plan import feature_plan, planned_features
from o2pl.kernels.actionwise import actionwise_value
from o2pl.kernels.finite import FiniteValue
from o2pl.kernels.gaussian import gaussian_value
from o2pl.kernels.linear import Features, HeldFeatures
from o2pl.kernels.outcome import outcome_value
from o2pl.kernels.registry import Problem, fused_value
from o2pl.kernels.softmax import softmax_value
from o2pl.kernels.sparse import SparseValue
from o2pl.objectives.outcome import Outcome, OutcomeLog
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.finite import FiniteClass, ThresholdClass
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.softmax import Softmax
from o2pl.policies.sparse import SparseSoftmax
from o2pl.protocols import Floats


def rows_of_features(problem: Problem, dtype: Any = np.float32) -> Features:
    """Features of some rows, made when they are asked for; in one pass where the maps are of the shipped kinds.

    Members that see the same rows through the same map have them in common.
    """
    key = (id(problem.seen), problem.start, np.dtype(dtype))
    known: Features | None = problem.shared.get(key)
    if known is not None:
        return known
    contexts = problem.rows.contexts
    plan = feature_plan(problem.features, problem.seen, contexts.shape[1])

    def features(rows: Any) -> Floats:
        if plan is None:
            return np.asarray(problem.featurise(rows))
        return planned_features(plan, contexts[rows])

    held = problem.shared[key] = HeldFeatures(features, dtype)
    return held


@fused_value(Softmax, Pessimistic, "dense")
def _softmax(problem: Problem) -> Any:
    assert isinstance(problem.policy, Softmax)
    return softmax_value(problem.log, rows_of_features(problem), problem.width, problem.policy.n_actions)


@fused_value(Softmax, Outcome, "dense", weighed=True)
def _outcome(problem: Problem) -> Any:
    assert isinstance(problem.policy, Softmax)
    assert isinstance(problem.log, OutcomeLog)
    return outcome_value(problem.log, rows_of_features(problem), problem.width, problem.policy.n_actions)


@fused_value(Gaussian, Pessimistic, "dense")
def _gaussian(problem: Problem) -> Any:
    assert isinstance(problem.policy, Gaussian)
    return gaussian_value(problem.log, rows_of_features(problem, np.float64), problem.width, problem.policy)


@fused_value(ActionWise, Pessimistic, "sets")
def _actionwise(problem: Problem) -> Any:
    return actionwise_value(problem.log, problem.featurise())


@fused_value(SparseSoftmax, Pessimistic, "sparse")
def _sparse(problem: Problem) -> Any:
    assert isinstance(problem.policy, SparseSoftmax)
    return SparseValue(problem.log, problem.featurise(), problem.policy.n_actions)


@fused_value(FiniteClass, Pessimistic, "dense")
@fused_value(ThresholdClass, Pessimistic, "dense")
def _finite(problem: Problem) -> Any:
    if problem.start or problem.log.control is not None:
        return None
    previous = problem.previous
    return (previous if isinstance(previous, FiniteValue) else FiniteValue()).upto(problem)
