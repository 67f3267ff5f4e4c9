"""Exact means against quadrature of the formulas as the paper prints them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from o2pl import InvalidInput
from o2pl.simulation.worlds import Advertising, ContinuousWorld, GaussianExample, Pricing, Toy

from .checks import assert_mean_is

Loss = Callable[[float, float, float], float]  # natural loss of (index, standard normal noise, action)


def normal(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def gaussian_loss(index: float, noise: float, a: float) -> float:
    return (a - (1.0 + 0.3 * noise)) ** 2 - 1


def toy_loss(index: float, noise: float, a: float) -> float:
    return min(-(index * a - a**2 + noise), 0)


def pricing_loss(index: float, noise: float, a: float) -> float:
    return min(-(a * (2 * index**2 - 0.6 * index * a) + noise), 0)


def advertising_loss(index: float, noise: float, a: float) -> float:
    p = abs((3.0, 1.0)[int(index)] + 0.5 * noise)
    return -max(a / p if a < p else 1 + 0.5 * (p - a), -0.1)


CASES: list[tuple[ContinuousWorld, Loss]] = [
    (GaussianExample(), gaussian_loss),
    (GaussianExample(reward_range=(-0.7, 0.6)), gaussian_loss),
    (Toy(), toy_loss),
    (Toy(3, 1.7, reward_range=(0.2, 1.5)), toy_loss),
    (Pricing(), pricing_loss),
    (Pricing(reward_range=(1.0, 4.0)), pricing_loss),
    (Advertising(), advertising_loss),
]
cases = pytest.mark.parametrize(("world", "loss"), CASES, ids=[repr(world) for world, _ in CASES])


@cases
def test_expected_rewards_and_losses_are_exact(world: ContinuousWorld, loss: Loss) -> None:
    rounds = world.sample(6, np.random.default_rng(0))
    low, high = world.reward_range
    for row, index in enumerate(rounds.index):
        for action in (-0.4, 0.7, 2.6, 4.5):

            def natural(z: float, index: float = index, action: float = action) -> float:
                return normal(z) * loss(index, z, action)

            def reward(z: float, index: float = index, action: float = action) -> float:
                return normal(z) * min(max(-loss(index, z, action), low), high)

            # Panels of a tenth of a deviation keep the kinks from hurting.
            edges = np.linspace(-9, 9, 181)
            slow = [sum(_panel(f, a, b) for a, b in pairwise(edges)) for f in (natural, reward)]
            one, given = np.array([row]), np.array([action])
            assert rounds.expected_losses(one, given)[0] == pytest.approx(slow[0], abs=3e-5)
            assert rounds.expected(one, given)[0] == pytest.approx(slow[1], abs=3e-5)


def _panel(function: Callable[[float], float], low: float, high: float) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(5)
    middle, half = (low + high) / 2, (high - low) / 2
    return half * sum(w * function(middle + half * x) for x, w in zip(nodes, weights, strict=True))


@cases
@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0])
def test_means_of_gaussian_policies_are_exact(world: ContinuousWorld, loss: Loss, scale: float) -> None:
    """Against adaptive quadrature over the action of the means of fixed actions."""
    rounds = world.sample(4, np.random.default_rng(1))
    for row in range(4):
        one = np.array([row])
        for mean in (0.2, 1.1, 2.4):
            for policy, fixed in (
                (rounds.policy_rewards, rounds.expected),
                (rounds.policy_losses, rounds.expected_losses),
            ):

                def at(z: float, fixed: Callable[..., np.ndarray] = fixed, mean: float = mean, one: Any = one) -> float:
                    return normal(z) * float(fixed(one, np.array([mean + scale * z]))[0])

                slow = quad(at, -8, 8, limit=300, epsabs=1e-10)[0]
                assert policy(one, np.array([mean]), scale)[0] == pytest.approx(slow, abs=1e-8)


@cases
def test_natural_losses_follow_the_formula(world: ContinuousWorld, loss: Loss) -> None:
    """And the reward is minus the loss, cut to the range."""
    rounds = world.sample(400, np.random.default_rng(2))
    rows, actions = np.arange(400), np.random.default_rng(3).normal(1, 1.5, 400)
    drawn = rounds.noise  # y for the Gaussian example, p for advertising, ε otherwise
    if isinstance(world, GaussianExample):
        slow: Any = (actions - drawn) ** 2 - 1
    elif isinstance(world, Advertising):
        slow = [-max(a / p if a < p else 1 + 0.5 * (p - a), -0.1) for a, p in zip(actions, drawn, strict=True)]
    else:
        slow = [loss(*triple) for triple in zip(rounds.index, drawn, actions, strict=True)]
    np.testing.assert_allclose(rounds.losses(rows, actions), slow)
    np.testing.assert_allclose(rounds.rewards(rows, actions), np.clip(-np.asarray(slow), *world.reward_range))


@cases
def test_natural_losses_have_their_expected_mean(world: ContinuousWorld, loss: Loss) -> None:
    rounds = world.sample(20000, np.random.default_rng(4))
    rows, scale = np.arange(20000), 0.4
    means = rounds.world.best_actions(rounds.index) + 0.3
    actions = means + scale * np.random.default_rng(5).standard_normal(20000)
    assert_mean_is(rounds.losses(rows, actions) - rounds.expected_losses(rows, actions), what="of actions")
    assert_mean_is(rounds.losses(rows, actions) - rounds.policy_losses(rows, means, scale), what="of the policy")


def test_the_index_is_what_the_context_says() -> None:
    toy = Toy(10, 2.0).sample(50, np.random.default_rng(6))
    w = np.full(10, 2 / math.sqrt(10))
    assert np.linalg.norm(w) == pytest.approx(2)
    np.testing.assert_allclose(toy.index, [float(np.dot(x.astype(float), w)) for x in toy.contexts], atol=1e-12)
    pricing = Pricing(10, 3).sample(50, np.random.default_rng(6))
    np.testing.assert_allclose(pricing.index, [(x[0] + x[1] + x[2]) / 3 for x in pricing.contexts.astype(float)])
    assert pricing.contexts.min() >= 1
    assert pricing.contexts.max() <= 2
    moons = Advertising().sample(400, np.random.default_rng(6))
    upper = moons.contexts[moons.index == 0]  # group 0 is the upper moon, a half circle about the origin
    np.testing.assert_allclose(np.hypot(upper[:, 0], upper[:, 1]), 1, atol=0.3)


def test_loggers_are_those_of_the_paper() -> None:
    generator = np.random.default_rng(9)
    actions = generator.normal(1.5, 1, 50)
    for world, centre, scale in (
        (GaussianExample(start=2.2, logging_scale=0.4), lambda x: 2.2, 0.4),
        (Toy(10, 2.0), lambda x: x.sum() * 2 / math.sqrt(10) / 2, 0.5),
        (Pricing(), lambda x: x[:3].mean(), 1.0),
        (Advertising(), lambda x: 2.0, 0.3),
    ):
        contexts = world.sample(50, generator).contexts
        slow = [norm.pdf(a, centre(x.astype(float)), scale) for a, x in zip(actions, contexts, strict=True)]
        np.testing.assert_allclose(world.logging_density(contexts, actions), slow)


def test_known_values() -> None:
    rows = np.arange(20000)
    start = GaussianExample().sample(20000, np.random.default_rng(7))
    assert start.policy_losses(rows, np.full(20000, 2.5), 0.3).mean() == pytest.approx(1.5**2 + 2 * 0.09 - 1)
    # Pricing at the best price 5z/3 with deviation .5: E[z³]/.6 - .25 · .6 E[z], E[z³] = 1.5³ + 3 · 1.5 · Var(z) = 3.5,
    # if losses were not capped at 0; the cap adds less than .001.
    pricing = Pricing().sample(20000, np.random.default_rng(8))
    values = pricing.policy_losses(rows, pricing.world.best_actions(pricing.index), 0.5)
    assert_mean_is(values, -(3.5 / 0.6 - 0.25 * 0.6 * 1.5))


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="reward_range"):
        Toy(reward_range=(-1.0, 5.0))
    with pytest.raises(InvalidInput, match="logging_scale"):
        Pricing(logging_scale=0.0)
    with pytest.raises(InvalidInput, match="relevant"):
        Pricing(relevant=11)
    with pytest.raises(InvalidInput, match="noise"):
        GaussianExample(noise=0.0)
    with pytest.raises(InvalidInput, match="scale"):
        Toy().sample(3, np.random.default_rng(0)).policy_losses(np.arange(3), np.zeros(3), -1.0)
