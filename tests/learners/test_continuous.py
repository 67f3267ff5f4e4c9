"""What holds for every learner of a real-valued action within bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import o2pl
from o2pl import InvalidInput

LOW, HIGH = 5.0, 20.0
LEARNERS: dict[str, Any] = {
    "continuous": lambda: o2pl.ContinuousBandit((LOW, HIGH), random_state=0),
    "gaussian": lambda: o2pl.GaussianO2PL(bounds=(LOW, HIGH), random_state=0),
    "gaussian, log-normal": lambda: o2pl.GaussianO2PL(bounds=(LOW, HIGH), distribution="log-normal", random_state=0),
    "gaussian, heteroscedastic": lambda: o2pl.GaussianO2PL(bounds=(LOW, HIGH), heteroscedastic=True, random_state=0),
    "continuous, log": lambda: o2pl.ContinuousBandit((LOW, HIGH), spacing="log", random_state=0),
}
each = pytest.mark.parametrize("name", LEARNERS)


def taught(name: str, rounds: int = 150, seed: int = 0) -> Any:
    """One that has learned where the reward is."""
    learner, generator = LEARNERS[name](), np.random.default_rng(seed)
    for _ in range(rounds):
        x = generator.normal(size=2)
        decision = learner.act(x)
        assert LOW < decision.action < HIGH
        learner.update(decision, float(np.exp(-(((decision.action - 11 - 2 * x[0]) / 4) ** 2))))
    return learner


@each
def test_the_propensity_is_the_density_of_what_is_played(name: str) -> None:
    learner, x = taught(name), np.array([0.3, -1.0])
    decisions = [learner.act(x) for _ in range(2000)]
    actions, densities = (np.array(column) for column in zip(*decisions, strict=True))
    np.testing.assert_allclose(densities, learner.predict_density([x] * 2000, actions), rtol=1e-9)
    grid = LOW + (HIGH - LOW) * (np.arange(30_000) + 0.5) / 30_000
    density = learner.predict_density(np.tile(x, (30_000, 1)), grid)
    assert density.mean() * (HIGH - LOW) == pytest.approx(1, abs=1e-3)
    below = np.cumsum(density) * (HIGH - LOW) / 30_000  # the distribution function
    assert kstest(np.interp(actions, grid, below), "uniform").pvalue > 1e-4
    mean, deviation = learner.predict_moments([x])
    assert mean[0] == pytest.approx((density * grid).mean() * (HIGH - LOW), rel=1e-3)
    assert deviation[0] == pytest.approx(np.sqrt((density * (grid - mean) ** 2).mean() * (HIGH - LOW)), rel=1e-2)


@each
@pytest.mark.parametrize(
    ("action", "said"),
    [
        (LOW, "clipped"),
        (HIGH, "clipped"),
        (HIGH + 0.1, "between the bounds 5 and 20"),
        (4.0, "between the bounds 5 and 20"),
    ],
)
def test_actions_at_the_ends_and_beyond_are_refused(name: str, action: float, said: str) -> None:
    learner = taught(name, 20)
    before = learner._engine.state()
    for tell in (
        lambda: learner.update([0.0, 1.0], action, 0.5, 0.1),
        lambda: learner.partial_fit([[0.0, 1.0]] * 2, [7.0, action], [0.5, 0.5], [0.1, 0.1]),
        lambda: LEARNERS[name]().update([0.0, 1.0], action, 0.5, 0.1),
        lambda: learner.fit([[0.0, 1.0]] * 2, [7.0, action], [0.5, 0.5], [0.1, 0.1]),
    ):
        with pytest.raises(InvalidInput, match=said):
            tell()
    after = learner._engine.state()
    assert after[0] == before[0]
    for key, array in before[1].items():
        np.testing.assert_array_equal(after[1][key], array)


@each
def test_a_log_of_another_logger_is_learned_from_and_evaluated(name: str) -> None:
    generator, n = np.random.default_rng(1), 1200
    x, actions = generator.normal(size=(n, 2)), generator.uniform(LOW, HIGH, size=n)
    rewards = np.exp(-(((actions - 11 - 2 * x[:, 0]) / 4) ** 2))
    log = o2pl.Interactions(x, actions, rewards, np.full(n, 1 / 15), reward_range=(0, 1), continuous=True)
    learner = LEARNERS[name]().fit(log[:600])
    found = o2pl.evaluate(log[600:], learner)
    fresh = generator.normal(size=(4000, 2))
    played = learner.snapshot().sample(learner._engine.encoder.encode(fresh), generator.random(4000))[0]
    truth = float(np.mean(np.exp(-(((played - 11 - 2 * fresh[:, 0]) / 4) ** 2))))
    assert truth > (0.85 if "continuous" in name else 0.6) > rewards.mean() + 0.1
    unbiased = [one for one in found.estimates if one.name in ("ips", "snips", "dr")]
    for estimate in (found.best, *unbiased):
        assert estimate.low - 0.02 <= truth <= estimate.high + 0.02, estimate
    assert len(unbiased) == 3
    assert learner.score(log[600:]) == pytest.approx(truth, abs=0.06)
    published = o2pl.evaluate(log[600:], learner.snapshot())
    assert published.value == pytest.approx(found.value, rel=1e-6)


@each
def test_bounds_are_asked_for_in_order(name: str) -> None:
    learner = LEARNERS[name]().set_params(bounds=(20, 5))
    with pytest.raises(InvalidInput, match="lowest action < highest action"):
        learner.act([1.0, 2.0])


def test_a_clipped_action_with_its_unclipped_density_is_refused() -> None:
    learner = o2pl.GaussianO2PL(centre=12.0, scale=5.0, reward_range=(0, 20), random_state=0)
    refused = told = 0
    for _ in range(60):
        price, density = learner.act([1.0, 2.0])
        clipped = min(max(price, 10.0), 14.0)
        if abs(clipped - price) < 0.02:  # as if it had been rounded
            learner.update([1.0, 2.0], clipped, 5.0, density)
            told += 1
            continue
        with pytest.raises(InvalidInput, match="clipped"):
            learner.update([1.0, 2.0], clipped, 5.0, density)
        refused += 1
    assert refused > 10
    assert told > 10
    assert len(learner.log_) == told
    price, density = learner.act([1.0, 2.0])
    learner.update([1.0, 2.0], round(price, 2), 5.0, density)  # to the cent, its density is the same
    learner.update([1.0, 2.0], 30.0, 5.0, 0.02)  # of another logger
    assert len(learner.log_) == told + 2


@pytest.mark.parametrize("name", ["plain", "continuous", "continuous, log"])
def test_rounds_in_one_call_are_those_of_the_engine(name: str) -> None:
    """What the compiled core decides and appends, and what it leaves: by decision, by parts, with a rounded action."""
    fast, slow = (LEARNERS[name]() if name in LEARNERS else o2pl.GaussianO2PL(random_state=3) for _ in range(2))
    generator = np.random.default_rng(5)
    contexts, rewards = generator.normal(size=(300, 3)).astype(np.float32), generator.random(300).tolist()
    numbers: Any = ([], [])
    for t, (context, reward) in enumerate(zip(contexts, rewards, strict=True)):
        decisions = [learner.act(context) for learner in (fast, slow)]
        assert decisions[0] == decisions[1]
        if t == 0:
            slow._engine.rounds = None
        for learner, decision, known in zip((fast, slow), decisions, numbers, strict=True):
            known.append(decision.number)
            action, density = decision
            if t % 3 == 0:
                learner.update(decision, reward)
            else:
                learner.update(context, action if t % 3 == 1 else action * (1 + 1e-9), reward, density)
    assert fast._engine.rounds is not None
    for learner, known in zip((fast, slow), numbers, strict=True):
        np.testing.assert_array_equal(learner.log_.ids, known)
    for column in ("contexts", "actions", "rewards", "propensities"):
        np.testing.assert_array_equal(getattr(fast.log_, column), getattr(slow.log_, column))
    with pytest.raises(InvalidInput):  # told already
        fast.update(decisions[0], 0.5)
