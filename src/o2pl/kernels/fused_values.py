"""Registration of the fused values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.data.contexts import SparseRows, are_sparse_contexts
from o2pl.features.plan import FeaturePlan, planned_features
from o2pl.kernels.actionwise import actionwise_value
from o2pl.kernels.dense import HELD as LAID_OUT
from o2pl.kernels.dense import dense_layout, dense_plan, dense_value
from o2pl.kernels.finite import FiniteValue
from o2pl.kernels.gaussian import gaussian_value
from o2pl.kernels.gpu import GpuValue
from o2pl.kernels.linear import HELD, Features, HeldFeatures
from o2pl.kernels.networks import network_value
from o2pl.kernels.registry import MemberProblem, register_value
from o2pl.kernels.sparse import SparseOutcome, SparseValue
from o2pl.objectives.outcome import Outcome, OutcomeLog
from o2pl.objectives.pessimistic import Pessimistic, PessimisticLog
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.finite import FiniteClass, ThresholdClass
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.neural import JaxPolicy, Neural, NeuralSets
from o2pl.policies.softmax import Softmax
from o2pl.policies.sparse import SparseSoftmax
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from o2pl._core import DenseValue


def feature_rows_for_fused(problem: MemberProblem, dtype: Any = np.float32) -> Features:
    """Return a function that computes features of rows on demand; in one pass for the built-in feature maps.

    Members with the same rows and map share them.
    """
    key = (id(problem.seen), problem.start, np.dtype(dtype))
    known: Features | None = problem.shared.get(key)
    if known is not None:
        return known
    contexts = problem.rows.contexts
    plan, bare = problem.feature_plan(), problem._replace(shared={})  # a cycle would keep features in memory

    def features(rows: Any) -> Floats:
        if plan is None:
            return np.asarray(bare.featurise(rows))
        return planned_features(plan, contexts[rows])

    held = problem.shared[key] = HeldFeatures(features, dtype, problem.shared.get("held", HELD))
    return held


def sparse_rows_for_fused(problem: MemberProblem) -> SparseRows:
    """Return all sparse feature rows; members with the same ones share them."""
    key = (id(problem.seen), problem.start, "sparse")
    known: SparseRows | None = problem.shared.get(key)
    if known is None:
        known = problem.shared[key] = problem.featurise()
    return known


@register_value(Softmax, Pessimistic, "dense", weighed=True)
@register_value(Softmax, Outcome, "dense", weighed=True)
def _fused_softmax(problem: MemberProblem) -> DenseValue:
    """Members that learn from the same features, columns and weights share the rows."""
    assert isinstance(problem.policy, Softmax)
    contexts, log, plan = problem.rows.contexts, problem.log, problem.feature_plan()
    key = (id(problem.seen), problem.start, type(log), problem.policy.n_actions)
    if plan is None:  # a feature map of somebody else
        contexts, plan = problem.featurise(), dense_plan(problem.width)
    known = problem.shared.get(key)
    if known is None or known[1] is not log.weights or isinstance(log, PessimisticLog):
        held = problem.shared.get("held", LAID_OUT)
        known = problem.shared[key] = dense_layout(log, contexts, plan, problem.policy.n_actions, held), log.weights
    return dense_value(log, known[0], len(contexts), plan.width, problem.policy.n_actions)


@register_value(Softmax, Pessimistic, "dense", weighed=True, device="card")
@register_value(Softmax, Outcome, "dense", weighed=True, device="card")
def _fused_on_gpu(problem: MemberProblem) -> GpuValue:
    assert isinstance(problem.policy, Softmax)
    held = problem.shared.setdefault((id(problem.seen), problem.start, "card"), {})
    features = feature_rows_for_fused(problem)
    return GpuValue(problem.log, features, problem.width, problem.policy.n_actions, problem.device, held=held)


@register_value(Gaussian, Pessimistic, "dense")
def _fused_gaussian(problem: MemberProblem) -> DenseValue:
    assert isinstance(problem.policy, Gaussian)
    return gaussian_value(problem.log, *_rows_and_plan_for_fused(problem, problem.rows.contexts), problem.policy)


@register_value(ActionWise, Pessimistic, "sets")
def _fused_actionwise(problem: MemberProblem) -> DenseValue:
    sets = problem.rows.contexts
    return actionwise_value(problem.log, *_rows_and_plan_for_fused(problem, sets.inputs), sets.offsets)


def _rows_and_plan_for_fused(problem: MemberProblem, rows: Floats) -> tuple[Floats, FeaturePlan]:
    """Return rows and the plan of their features, for sums in double precision: products are rounded, as elsewhere."""
    plan = problem.feature_plan()
    if plan is not None and len(plan.product_shift) == 0:
        return rows, plan
    return problem.features.transform(problem.seen, rows), dense_plan(problem.width)


@register_value(SparseSoftmax, Pessimistic, "sparse")
def _fused_sparse(problem: MemberProblem) -> SparseValue:
    assert isinstance(problem.policy, SparseSoftmax)
    return SparseValue(problem.log, sparse_rows_for_fused(problem), problem.policy.n_actions)


@register_value(SparseSoftmax, Outcome, "sparse", weighed=True)
def _fused_sparse_outcome(problem: MemberProblem) -> SparseOutcome:
    assert isinstance(problem.policy, SparseSoftmax)
    assert isinstance(problem.log, OutcomeLog)
    return SparseOutcome(problem.log, sparse_rows_for_fused(problem), problem.policy.n_actions)


@register_value(ActionWise, Outcome, "sets", weighed=True)
@register_value(ActionWise, Outcome, "sparse sets", weighed=True)
def _fused_played_outcome(problem: MemberProblem) -> DenseValue | SparseOutcome | None:
    """For independent actions, only the played one enters the likelihood: rows with a single action each."""
    log, sets = problem.log, problem.rows.contexts
    assert isinstance(log, OutcomeLog)
    if log.competing:
        return None
    alone = replace(log, actions=np.zeros_like(log.actions), offsets=None)
    key = (id(problem.seen), problem.start, "played")
    played = problem.shared.get(key)
    if played is None:
        played = sets.played(log.actions)
        if are_sparse_contexts(played):
            played = problem.features.transform(problem.seen, played)
        problem.shared[key] = played
    if are_sparse_contexts(played):
        return SparseOutcome(alone, played, 1)
    plan = problem.feature_plan()
    if plan is None:
        played, plan = problem.features.transform(problem.seen, played), dense_plan(problem.width)
    return dense_value(alone, dense_layout(alone, played, plan, 1), len(played), plan.width, 1)


for _objective in (Pessimistic, Outcome):
    for _policy, _kind in ((Neural, "dense"), (NeuralSets, "sets"), (JaxPolicy, "dense"), (JaxPolicy, "sets")):
        for _device in ("cpu", "card"):
            register_value(_policy, _objective, _kind, weighed=True, device=_device)(network_value)


@register_value(FiniteClass, Pessimistic, "dense")
@register_value(ThresholdClass, Pessimistic, "dense")
def _fused_finite(problem: MemberProblem) -> FiniteValue | None:
    if problem.start or problem.log.control is not None:
        return None
    previous = problem.previous
    return (previous if isinstance(previous, FiniteValue) else FiniteValue()).upto(problem)
