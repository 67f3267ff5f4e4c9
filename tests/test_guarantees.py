"""What is promised, tested as it is promised: on seeded simulations, judged by a statistical test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.guarantees.catalogue import named
from benchmarks.guarantees.doors import DOORS
from benchmarks.guarantees.page import share, wrong
from benchmarks.guarantees.run import count
from scipy.stats import chisquare

import o2pl
from o2pl.objectives import PessimisticLog, Phi, PolicyValue
from o2pl.oracles import Exhaustive
from o2pl.policies import FiniteClass, ThresholdClass
from o2pl.theory import clip_level, log_inverse_confidence
from o2pl.theory.inequality import refutes

FLOOR = 0.1
THETAS = np.linspace(FLOOR, 1 - FLOOR, 41)
SINGLE_CONTEXT = FiniteClass(np.stack([1 - THETAS, THETAS], axis=1))  # π_θ(1) = θ, the paper's example with β = 1


def test_regret_of_the_exact_learner_grows_no_faster_than_log_squared() -> None:
    """Theorem 1 at β = 1, p = 0: Algorithm 1 as printed, on the paper's non-realisable example, T = 1e5, 20 seeds.

    Regret/log² T does not rise over the last two decades beyond its standard error.
    """
    rounds, seeds, means = 100_000, 20, np.array([0.3, 0.6])
    at = np.array([1_000, 10_000, 100_000])
    scaled = np.empty((seeds, len(at)))
    for seed in range(seeds):
        rewards = (np.random.default_rng(seed).random((rounds, 2)) < means).astype(float)
        learner = o2pl.O2PL.paper(policy=SINGLE_CONTEXT, random_state=seed)
        run = learner.run((np.zeros((rounds, 1)), rewards))
        theta = np.where(run.actions == 1, run.propensities, 1 - run.propensities)  # π_t(1)
        regret = np.cumsum((1 - FLOOR - theta) * (means[1] - means[0]))
        scaled[seed] = regret[at - 1] / np.log(at) ** 2
    mean, error = scaled.mean(axis=0), scaled.std(axis=0, ddof=1) / np.sqrt(seeds)
    assert mean[1] <= mean[0] + error[0] + error[1]
    assert mean[2] <= mean[1] + error[1] + error[2]
    assert mean[0] > 10 * error[0]  # there was regret to speak of
    assert mean[2] < 0.2 * 0.12 * rounds / np.log(rounds) ** 2  # and far less than never learning would have cost


@pytest.mark.parametrize("policies", [SINGLE_CONTEXT, ThresholdClass(tuple(np.linspace(-2, 2, 33)), 0.1)])
@pytest.mark.parametrize("penalty", [1.0, 0.05])
def test_on_a_finite_class_the_exact_learner_is_exhaustive_minimisation(policies: Any, penalty: float) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(150, 1)).astype(np.float32) * (policies is not SINGLE_CONTEXT)
    learner = o2pl.O2PL.paper(policy=policies, penalty=penalty, random_state=0)
    chosen = set()
    for t in range(1, 151):
        action, propensity = learner.act(x[t - 1])
        learner.update(x[t - 1], action, float(generator.random() < 0.3 + 0.5 * action), propensity)
        log, alpha = learner.log_, clip_level(t)
        phi = Phi(alpha, t, log_inverse_confidence(t, 0.05), 0.0, penalty)
        prepared = PessimisticLog(log.actions, log.losses, log.propensities, alpha, phi)
        value = PolicyValue(policies, log.contexts, prepared)
        best = Exhaustive()(value)
        member = int(np.argmax(learner._engine.members[0].params))
        assert value.values()[member] == pytest.approx(best.value, abs=1e-12)
        chosen.add(member)
    assert len(chosen) > 1 or penalty == 1  # the paper's own penalty keeps still for longer than this


ACTORS: dict[str, Any] = {
    "union, exploring": lambda: o2pl.O2PL(4, exploration=0.2, random_state=0),
    "linear, not sharpened": lambda: o2pl.O2PL(4, policy="linear", sharpness=1.0, random_state=0),
    "replay, exploring": lambda: o2pl.O2PL(4, policy="linear", schedule="replay", exploration=0.1, random_state=0),
    "thresholds": lambda: o2pl.O2PL(policy=ThresholdClass((-1.0, 0.0, 1.0), 0.2), sharpness=1.0, random_state=0),
}


@pytest.mark.parametrize("name", ACTORS)
def test_propensities_are_honest(name: str) -> None:
    """1e5 decisions on one context, after learning: each action comes as often as its propensity says."""
    draws = 100_000
    generator = np.random.default_rng(1)
    learner = ACTORS[name]()
    k, d = (2, 1) if name == "thresholds" else (4, 3)
    x = generator.normal(size=(200, d)).astype(np.float32)
    means = 1 / (1 + np.exp(-x @ generator.normal(size=(d, k))))
    learner.run((x, (generator.random((200, k)) < means).astype(float)))
    decisions = [learner.act(x[0]) for _ in range(draws)]
    pi = learner.predict_proba(x[:1])[0]
    assert {(a, p) for a, p in decisions} == {(a, pi[a]) for a in range(k)}
    counts = np.bincount([a for a, _ in decisions], minlength=k)
    assert draws * pi.min() > 5
    assert pi.max() < 0.99
    assert chisquare(counts, draws * pi).pvalue > 1e-4


def test_a_propensity_never_exceeds_one() -> None:
    """Sure actions, whose probability is a sum of rounded shares; what `act` says, `update` must accept."""
    x = np.random.default_rng(2).normal(size=(600, 3))
    for exploration in (0.0, 0.01, 0.3):
        learner = o2pl.O2PL(3, exploration=exploration, sharpness=30.0, random_state=0)
        run = learner.run((x, np.eye(3)[x.argmax(axis=1)]))
        assert run.propensities.max() <= 1
        assert learner.predict_proba(x).max() <= 1


HOSTILE = [
    ("wrong reward model", "evaluate, difference"),
    ("wrong reward model", "fit"),
    ("a bad action is hardly explored", "evaluate, difference"),
    ("it gives up what was hardly tried", "evaluate, difference"),
    ("it gives up what was hardly tried", "from_incumbent"),
    ("it gives up what hardly ever fails", "evaluate, difference"),
    ("rare rewards", "evaluate, value"),
    ("rare losses, of the policy only", "evaluate, difference"),
    ("losses are rare and total, of the policy only", "evaluate, difference"),
    ("rewards are all 1", "evaluate, difference"),
    ("an effective sample size of 5", "evaluate, difference"),
    ("every row twice", "evaluate, difference"),
    ("1s at once, 0s 300 rows late", "evaluate, value"),
    ("deterministic log", "candidates"),
    ("two policies, common noise", "evaluate, any time"),
    ("two policies, common noise", "fit"),
    ("deterministic log", "from_incumbent, given"),
    ("the incumbent is not linear", "from_incumbent"),
    ("better by .10, then worse by .05", "safe_to_deploy"),
    ("exact propensities, 5 actions", "propensity test"),
    ("exact propensities, an action excluded", "propensity test"),
    ("lists, rewards of a few per cent", "evaluate_lists"),
    ("as good as the baseline, low rewards late", "service, guard"),
    ("A/A, daily looks, users who return", "service, control group"),
    ("control group, a gain of .1, daily looks", "service, control group"),
]


@pytest.mark.parametrize(("world", "door"), HOSTILE)
def test_the_judgement_keeps_its_word_in_hostile_worlds(world: str, door: str) -> None:
    """A small part of `make guarantees`; binomial tests at 1e-3."""
    row, promised = count(named(world), door, 20, first=10_000), DOORS[door]
    assert not refutes(wrong(row), row["logs"], max(promised.wrong, 1e-9), 1e-3)
    assert not row["intervals"] or not refutes(row["missed"], row["intervals"], promised.missed, 1e-3)


def test_a_gain_of_three_standard_errors_is_seen() -> None:
    row = count(named("power: two policies"), "evaluate, difference", 30, first=10_000)
    assert refutes(row["better"], 30, 0.5, 1e-3)
    assert share(row["missed"], row["intervals"]) < 0.3
