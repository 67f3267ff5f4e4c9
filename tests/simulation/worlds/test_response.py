from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds import RESPONSES, Response
from o2pl.storage import decode_from_storage, encode_for_storage

from .checks import assert_mean_is

each = pytest.mark.parametrize("name", RESPONSES)


@each
def test_expected_rewards_are_the_means_and_rewards_lie_in_the_range(name: str) -> None:
    world, n = RESPONSES[name], 100_000
    rounds, generator = world.sample(n, np.random.default_rng(0)), np.random.default_rng(1)
    rows, actions = np.arange(n), generator.uniform(*world.bounds, size=n)
    rewards, expected = rounds.rewards(rows, actions), rounds.expected(rows, actions)
    low, high = world.reward_range
    for values in (rewards, expected):
        assert low <= values.min() <= values.max() <= high
    for weight in (1.0, actions, actions > np.median(actions), rounds.contexts[:, 0] > 0):
        assert_mean_is((rewards - expected) * weight, what=name)


@each
def test_the_best_is_the_best_and_depends_on_the_context(name: str) -> None:
    rounds = RESPONSES[name].sample(300, np.random.default_rng(2))
    grid = np.linspace(*RESPONSES[name].bounds, 400)
    tried = np.stack([rounds.expected(np.arange(300), np.full(300, action)) for action in grid])
    assert (rounds.best >= tried.max(axis=0) - 1e-6).all()
    assert (rounds.best <= tried.max(axis=0) + 0.02).all()
    assert rounds.best_constant == pytest.approx(tried.mean(axis=1).max(), rel=0.01)
    assert rounds.best.mean() > rounds.best_constant * 1.05


@each
def test_the_same_seed_gives_the_same_rounds(name: str) -> None:
    first, again, other = (RESPONSES[name].sample(50, np.random.default_rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.contexts, again.contexts)
    np.testing.assert_array_equal(first.chance, again.chance)
    assert not np.array_equal(first.contexts, other.contexts)
    assert first.contexts.dtype == np.float32
    assert len(first) == 50
    assert decode_from_storage(encode_for_storage(RESPONSES[name])) == RESPONSES[name]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match="two-peaks"):
        Response("peaks")
