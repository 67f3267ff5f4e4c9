"""Many steps in one call beside the plain parts, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets, as_contexts
from o2pl.data.interactions import Interactions
from o2pl.features import Standardise
from o2pl.kernels import registry
from o2pl.kernels.networks import NetworkValue, network_program, network_value
from o2pl.kernels.registry import MemberProblem, find_value
from o2pl.objectives import Outcome, Pessimistic, PolicyValue, ridge_control
from o2pl.oracles import Minibatch
from o2pl.policies import JaxPolicy, Neural, NeuralSets

N, K = 90, 3


def products(params: Any, x: Any) -> Any:
    return x @ params[0] + (x * x) @ params[1]


POLICIES = {
    "neural": Neural(K, (6, 5)),
    "sets": NeuralSets((6,), "tanh"),
    "a function": JaxPolicy(products, lambda d: [np.zeros((d, K)), np.zeros((d, K))], K),
    "a function of sets": JaxPolicy(products, lambda d: [np.zeros(d), np.zeros(d)]),
}
OBJECTIVES = {
    "pessimistic": Pessimistic(0.5, baseline="mean", l2=0.3),
    "clipped": Pessimistic(0.2, clip=1.5, l2=0.1),
    "competing": Outcome(True, 0.5),
    "independent": Outcome(False, 0.5),
}


def problem_of(policy: Any, objective: Any, weighed: bool, control: bool) -> MemberProblem:
    generator = np.random.default_rng(3)
    sizes = generator.integers(1, 6, size=N)
    contexts: Any = generator.normal(size=(N, 4)).astype(np.float32)
    actions = generator.integers(K, size=N)
    if policy.sets:
        contexts = ActionSets.of([generator.normal(size=(size, 4)) for size in sizes])
        actions = generator.integers(sizes)
    rewards, propensities = generator.random(N), generator.uniform(0.05, 0.9, N)
    rows = Interactions(contexts, actions, rewards, propensities, (0, 1), None if policy.sets else K)
    features = Standardise()
    seen = features.observe(features.init(as_contexts(contexts).n_inputs), contexts.values if policy.sets else contexts)
    variate = None
    if control:
        variate = ridge_control(contexts, rows.actions, rows.losses, K, objective.level(rows.losses), 5.0)
    log = objective.prepare(rows, variate, generator.uniform(0.1, 1, N) if weighed else None)
    return MemberProblem(policy, objective, features, seen, rows, 0, log, None, {})


@pytest.mark.jax
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", POLICIES)
def test_steps_in_one_call_are_those_of_the_parts(name: str, objective: str, weighed: bool) -> None:
    policy, own = POLICIES[name], OBJECTIVES[objective]
    control = objective == "pessimistic" and not policy.sets and not weighed
    problem = problem_of(policy, own, weighed, control)
    fused: Any = find_value(problem)
    assert type(fused) is NetworkValue
    plain = PolicyValue(policy, problem.featurise(), problem.log, own.extra)
    start = 0.5 * np.random.default_rng(4).normal(size=policy.n_params(4) + own.extra)
    assert fused(start)[0] == pytest.approx(plain(start)[0], rel=1e-6)
    oracle = Minibatch(batch=32, least=70, most=70, step_size=0.02, tangents=2)  # more than one call, the last not full
    found, kept = oracle.step(fused, start, oracle.init(len(start)))
    expected, slow = oracle.step(plain, start, oracle.init(len(start)))
    np.testing.assert_allclose(found.params, expected.params, atol=2e-3)
    np.testing.assert_allclose(kept["first"], slow["first"], atol=2e-3 * (1 + np.abs(slow["first"]).max()))
    assert found.value == pytest.approx(expected.value, abs=2e-3)
    assert np.abs(found.params - start).max() > 0.1


def test_every_network_has_its_steps_in_one_call() -> None:
    kinds = {(type(policy), "sets" if policy.sets else "dense") for policy in POLICIES.values()}
    found = {(key[0], key[2]) for key, make in registry.VALUES.items() if make is network_value}
    assert found == kinds


@pytest.mark.jax
def test_a_longer_log_needs_no_newprogram_of() -> None:
    problem = problem_of(Neural(K, (3,), seed=5), Outcome(), False, False)
    fused: Any = find_value(problem)
    oracle, start = Minibatch(batch=16, least=70), np.zeros(problem.policy.n_params(4) + 1)
    for rows in (10, 40, 90):
        part = problem._replace(rows=problem.rows[:rows], log=problem.objective.prepare(problem.rows[:rows]))
        shorter: Any = find_value(part)
        oracle.step(shorter, start, oracle.init(len(start)))
    assert network_program(fused._static())._cache_size() == 1
