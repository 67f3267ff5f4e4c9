"""Every row of the tables goes through these checks; adding a row is all it takes."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from o2pl import O2PL, GaussianO2PL, InvalidInput
from o2pl.protocols import Environment, Rounds
from o2pl.simulation.worlds import (
    LOGGED_TASKS,
    SELECTION_TASKS,
    WORLDS,
    Classification,
    ContinuousWorld,
    Embedded,
    GaussianExample,
    Margin,
    MulticlassLog,
    Pricing,
    SyntheticLog,
    Toy,
    Wheel,
)
from o2pl.storage import decode_from_storage, encode_for_storage

from .checks import LEVEL, assert_mean_is

ROUNDS = 20000
# The table, and settings away from the usual ones: much noise, much cutting.
OTHERS: dict[str, Environment] = {
    "wheel, noisy": Wheel(0.5, (2.0, -1.0, 3.0), 0.7),
    "margin, ν = 4": Margin(4.0, 0.5),
    "noisy labels": Classification(Embedded("digits"), flip=0.2),
    "gaussian, cut": GaussianExample(0.5, 0.6, 1.0, reward_range=(-0.7, 0.6)),
    "toy, cut": Toy(4, 2.0, reward_range=(0.2, 0.9)),
    "pricing, cut": Pricing(5, 2, reward_range=(2.0, 5.0)),
}
EVERY = WORLDS | OTHERS
CONTINUOUS = {name: world for name, world in EVERY.items() if isinstance(world, ContinuousWorld)}
worlds = pytest.mark.parametrize("world", EVERY.values(), ids=EVERY.keys())
continuous_worlds = pytest.mark.parametrize("world", CONTINUOUS.values(), ids=CONTINUOUS.keys())
logged_tasks = pytest.mark.parametrize("task", LOGGED_TASKS.values(), ids=LOGGED_TASKS.keys())


def some_actions(world: Environment, rounds: Rounds, seed: int) -> np.ndarray:
    """Uniform actions; continuous ones twice as wide as the logging policy."""
    generator = np.random.default_rng(seed)
    if isinstance(world, ContinuousWorld):
        spread = 2 * world.logging_scale * generator.standard_normal(len(rounds.contexts))
        return world.logging_means(rounds.contexts) + spread
    return generator.integers(0, world.n_actions, len(rounds.contexts))


@worlds
def test_shapes_and_types(world: Environment) -> None:
    rounds = world.sample(50, np.random.default_rng(0))
    assert rounds.contexts.shape[0] == 50
    assert rounds.contexts.ndim == 2
    assert rounds.contexts.dtype == np.float32
    assert np.isfinite(rounds.contexts).all()
    rows = np.array([3, 3, 49])
    for values in (
        rounds.rewards(rows, some_actions(world, rounds, 1)[:3]),
        rounds.expected(rows, np.array([0, 1, 0])),
    ):
        assert values.shape == (3,)
        assert values.dtype == np.float64
    assert isinstance(world.n_actions, int) or isinstance(world, ContinuousWorld)


@worlds
def test_the_same_seed_gives_the_same_rounds(world: Environment) -> None:
    first, again, other = (world.sample(60, np.random.default_rng(seed)) for seed in (5, 5, 6))
    rows, actions = np.arange(60), some_actions(world, first, 1)
    np.testing.assert_array_equal(first.contexts, again.contexts)
    np.testing.assert_array_equal(first.rewards(rows, actions), again.rewards(rows, actions))
    assert not np.array_equal(first.rewards(rows, actions), other.rewards(rows, actions))
    # Chance is settled: asking again, one by one, in another order changes nothing.
    singly = [first.rewards(rows[i : i + 1], actions[i : i + 1])[0] for i in reversed(range(60))]
    np.testing.assert_array_equal(singly[::-1], first.rewards(rows, actions))


@worlds
def test_rewards_lie_in_the_range(world: Environment) -> None:
    rounds = world.sample(ROUNDS, np.random.default_rng(1))
    low, high = world.reward_range
    rows, actions = np.arange(len(rounds.contexts)), some_actions(world, rounds, 2)
    for values in (rounds.rewards(rows, actions), rounds.expected(rows, actions)):
        assert low <= values.min()
        assert values.max() <= high


@worlds
def test_expected_rewards_agree_with_monte_carlo(world: Environment) -> None:
    """E[(reward - expected) h(x, a)] = 0 for a handful of functions h, by z tests."""
    rounds = world.sample(ROUNDS, np.random.default_rng(2))
    n = len(rounds.contexts)
    rows, actions = np.arange(n), some_actions(world, rounds, 3)
    surprise = rounds.rewards(rows, actions) - rounds.expected(rows, actions)
    assert_mean_is(surprise, what="mean")
    of_action = (
        [actions, actions > np.median(actions)]
        if world.n_actions is None
        else [actions == k for k in range(world.n_actions)]
    )
    for weight in of_action:
        assert_mean_is(surprise * weight, what="by action")
    for column in rounds.contexts.T[:3].astype(np.float64):
        for weight in of_action[:5]:
            assert_mean_is(surprise * weight * (column > np.median(column)), what="by action and context")


@worlds
def test_best_is_the_best_expected_reward(world: Environment) -> None:
    rounds = world.sample(300, np.random.default_rng(3))
    rows = np.arange(len(rounds.contexts))
    candidates = range(world.n_actions) if world.n_actions else np.linspace(-3, 5, 801)
    tried = np.stack([rounds.expected(rows, np.full(len(rows), action)) for action in candidates])
    tolerance = 1e-12 if world.n_actions else 2e-3  # the grid's spacing
    assert (rounds.best >= tried.max(axis=0) - 1e-9).all()
    assert (rounds.best <= tried.max(axis=0) + tolerance).all()


@pytest.mark.parametrize("rounds", [0, -1, 2.5, None])
@worlds
def test_a_wrong_number_of_rounds_is_refused(world: Environment, rounds: object) -> None:
    with pytest.raises(InvalidInput, match="rounds"):
        world.sample(rounds, np.random.default_rng(0))


@pytest.mark.parametrize("name", WORLDS)
def test_learners_run_in_it(name: str) -> None:
    world = WORLDS[name]
    if world.n_actions is None:
        learner: Any = GaussianO2PL(reward_range=world.reward_range, schedule="replay", random_state=0)
    else:
        learner = O2PL(world.n_actions, reward_range=world.reward_range, schedule="replay", random_state=0)
    assert len(learner.run(world, 30, seed=1).rewards) == 30


@pytest.mark.parametrize("world", [*EVERY.values(), *LOGGED_TASKS.values(), *SELECTION_TASKS.values()], ids=repr)
def test_settings_are_values_that_can_be_stored(world: Environment) -> None:
    assert decode_from_storage(json.loads(json.dumps(encode_for_storage(world)))) == world
    same: Any = world
    assert replace(same) == world
    with pytest.raises(FrozenInstanceError):
        setattr(world, fields(world)[0].name, None)


# -- continuous worlds: their loggers


@continuous_worlds
def test_the_logging_density_integrates_to_one(world: ContinuousWorld) -> None:
    contexts = world.sample(5, np.random.default_rng(4)).contexts
    for x in contexts:

        def density(action: float, x: np.ndarray = x) -> float:
            return float(world.logging_density(x[None], np.array([action]))[0])

        assert quad(density, -12, 16, points=[0, 1, 2, 3], limit=200)[0] == pytest.approx(1, abs=1e-8)


@continuous_worlds
def test_logged_actions_follow_the_logging_density(world: ContinuousWorld) -> None:
    """Kolmogorov-Smirnov: P(A ≤ a|x), integrated from the density, is uniform."""
    rounds = world.sample(2000, np.random.default_rng(5))
    log = world.log(rounds, np.random.default_rng(6))
    np.testing.assert_allclose(log.propensities, world.logging_density(log.contexts, log.actions))
    grid = np.linspace(0, 1, 4001)
    low = -12.0
    values = low + grid * (log.actions[:, None] - low)  # [n, 4001], each row up to its own action
    flat = world.logging_density(np.repeat(log.contexts, len(grid), axis=0), values.reshape(-1)).reshape(values.shape)
    reached = np.trapezoid(flat, values, axis=1)
    assert kstest(reached, "uniform").pvalue > LEVEL
    assert_mean_is((reached - 0.5) ** 2, 1 / 12, "spread")  # a wrong deviation shows here first
    low_reward, high_reward = world.reward_range
    np.testing.assert_array_equal(log.rewards, rounds.rewards(np.arange(len(rounds)), log.actions))
    np.testing.assert_allclose(log.losses, -(log.rewards - low_reward) / (high_reward - low_reward))
    assert log.continuous


# -- logged tasks


@logged_tasks
def test_logs_have_exact_propensities(task: SyntheticLog | MulticlassLog) -> None:
    logged = task.log(5000, np.random.default_rng(0))
    log, n = logged.interactions, len(logged.interactions)
    assert logged.logging.shape == (n, task.n_actions)
    np.testing.assert_allclose(logged.logging.sum(axis=1), 1)
    np.testing.assert_allclose(logged.logging_there.sum(axis=1), 1)
    np.testing.assert_array_equal(log.propensities, logged.logging[np.arange(n), log.actions])
    assert log.contexts.dtype == np.float32
    assert set(np.unique(log.rewards)) <= {0.0, 1.0}
    epsilon = task.logger.epsilon if isinstance(task, SyntheticLog) else task.epsilon
    assert logged.logging.min() >= epsilon / task.n_actions - 1e-12
    for action in range(task.n_actions):
        assert_mean_is((log.actions == action) - logged.logging[:, action], what=f"action {action}")


@logged_tasks
def test_the_value_of_the_logger_is_what_it_earned(task: SyntheticLog | MulticlassLog) -> None:
    """Mean reward in the log against the exact value elsewhere, a z test with the errors of both samples."""
    logged = task.log(20000, np.random.default_rng(1))
    rewards = logged.interactions.rewards
    there = (logged.logging_there * logged.means).sum(axis=1)
    error = np.sqrt(rewards.var() / len(rewards) + there.var() / len(there))
    assert abs(rewards.mean() - logged.logger_value) < 4.42 * error
    assert logged.logger_value <= logged.oracle_value
    greedy = np.eye(task.n_actions)[logged.means.argmax(axis=1)]
    assert logged.value(greedy) == pytest.approx(logged.oracle_value)
    with pytest.raises(InvalidInput, match="probabilities"):
        logged.value(greedy[:-1])


@logged_tasks
def test_the_same_seed_gives_the_same_log(task: SyntheticLog | MulticlassLog) -> None:
    first, again, other = (task.log(40, np.random.default_rng(seed)).interactions for seed in (1, 1, 2))
    for column in ("contexts", "actions", "losses", "propensities"):
        np.testing.assert_array_equal(getattr(first, column), getattr(again, column))
    assert not np.array_equal(first.contexts, other.contexts)
