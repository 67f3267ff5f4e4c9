from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds import Drifting, Embedded, Structured, make_dataset
from o2pl.simulation.worlds.structured import CHANGES, STRUCTURES, structured_new_share, structured_renaming

from .checks import assert_rate_is


def labelled(n: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The context says the label."""
    y = np.random.default_rng(0).integers(0, classes, n)
    return y[:, None].astype(float), y


def world(structure: str, n: int = 4000, classes: int = 8, name: str = "data") -> Structured:
    return Structured(make_dataset(*labelled(n, classes), name), structure)


@pytest.mark.parametrize(("structure", "right", "wrong"), [("noisy", 0.5, 0.1), ("rare", 0.1, 0.01)])
def test_bernoulli_rewards_have_the_stated_rates(structure: str, right: float, wrong: float) -> None:
    rounds = world(structure).sample(4000, np.random.default_rng(1))
    rows, labels = np.arange(4000), rounds.contexts[:, 0].astype(int)
    assert_rate_is(rounds.rewards(rows, labels), right)
    assert_rate_is(rounds.rewards(rows, (labels + 3) % 8), wrong)
    np.testing.assert_allclose(rounds.expected(rows, labels), right)
    np.testing.assert_allclose(rounds.expected(rows, (labels + 3) % 8), wrong)


def test_one_hot_pays_the_class_alone() -> None:
    rounds = world("one-hot").sample(300, np.random.default_rng(1))
    np.testing.assert_array_equal(rounds.table, np.eye(8)[rounds.contexts[:, 0].astype(int)])
    np.testing.assert_array_equal(rounds.table, rounds.expected_table)


@pytest.mark.parametrize(("classes", "good"), [(2, 2), (3, 2), (8, 3), (26, 7)])
def test_several_actions_are_good_and_the_class_is_one_of_them(classes: int, good: int) -> None:
    means = world("several", classes=classes).means
    assert set(np.unique(means)) <= {0.0, 1.0}
    np.testing.assert_array_equal(means.sum(axis=1), good)
    np.testing.assert_array_equal(means.sum(axis=0), good)  # none is good for more classes than another
    np.testing.assert_array_equal(np.diag(means), 1.0)
    other = world("several", classes=classes, name="other").means
    assert classes < 8 or not np.array_equal(means, other)  # the set fixes them
    np.testing.assert_array_equal(means, world("several", classes=classes).means)


def test_graded_rewards_fall_with_the_distance_on_the_circle() -> None:
    means = world("graded", classes=6).means
    np.testing.assert_allclose(means[0], [0.5, 0.3, 0.18, 0.108, 0.18, 0.3])
    np.testing.assert_allclose(means[4], [0.18, 0.108, 0.18, 0.3, 0.5, 0.3])
    rounds = world("graded", classes=6).sample(4000, np.random.default_rng(1))
    shares = rounds.table / (2 * rounds.expected_table)
    assert 0 <= shares.min() < 0.001
    assert 0.999 < shares.max() <= 1
    assert abs(shares.mean() - 0.5) < 4.42 * np.sqrt(1 / 12 / shares.size)


def test_costs_are_skewed_and_scaled_to_the_range() -> None:
    means = world("costs", classes=26).means
    np.testing.assert_array_equal(np.diag(means), 1.0)
    others = 1 - means[~np.eye(26, dtype=bool)]  # cost / largest
    assert means.min() == 0.0
    assert (others > 0).all()
    logs = np.log(others)
    assert abs(logs.std() - 1) < 0.15  # of N(0, 1), 650 numbers
    assert np.median(others) < 0.2  # most are small beside the largest


def test_drift_gives_every_class_another_name() -> None:
    for k in range(2, 8):
        names = structured_renaming(np.arange(k), k)
        assert sorted(names) == list(range(k))
        assert (names != np.arange(k)).all()
    np.testing.assert_array_equal(structured_renaming(np.array([0, 1]), 2), [1, 0])


def test_when_new_names_count() -> None:
    np.testing.assert_array_equal(structured_new_share("none", 8), 0)
    np.testing.assert_array_equal(structured_new_share("reversal", 8), [0, 0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_allclose(structured_new_share("gradual", 8), [0, 0, 0, 0.25, 0.5, 0.75, 1, 1])


@pytest.mark.parametrize("change", CHANGES)
def test_drifting_rewards(change: str) -> None:
    n = 8000
    rounds = Drifting(make_dataset(*labelled(n, 5)), change).sample(n, np.random.default_rng(1))
    old, rows = rounds.contexts[:, 0].astype(int), np.arange(n)
    new = (old + 2) % 5
    np.testing.assert_array_equal(rounds.table.sum(axis=1), 1)
    quarter = n // 4
    first, third, last = rows[:quarter], rows[2 * quarter : 3 * quarter], rows[3 * quarter :]
    np.testing.assert_array_equal(rounds.rewards(first, old[first]), 1)
    late = {"none": old, "reversal": new, "gradual": new}[change]
    np.testing.assert_array_equal(rounds.rewards(last, late[last]), 1)
    if change == "gradual":  # from one half to all
        assert_rate_is(rounds.rewards(third, new[third]), 0.75)
        np.testing.assert_allclose(rounds.expected(third, new[third]) + rounds.expected(third, old[third]), 1)
        np.testing.assert_allclose(rounds.expected(third[[0]], new[third[[0]]]), 0.5)


def test_the_horizon_is_the_lesser_of_rows_and_rounds() -> None:
    for world in (Structured(Embedded("iris")), Drifting(Embedded("iris"))):
        assert len(world.sample(40, np.random.default_rng(0))) == 40
        assert len(world.sample(5000, np.random.default_rng(0))) == 150


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="source"):
        Structured("iris")
    with pytest.raises(InvalidInput, match="structure: found 'dense', expected one of"):
        Structured(Embedded("iris"), "dense")
    with pytest.raises(InvalidInput, match="source"):
        Drifting("iris")
    with pytest.raises(InvalidInput, match="change: found 'sudden'"):
        Drifting(Embedded("iris"), "sudden")
    assert set(STRUCTURES) == {"one-hot", "noisy", "rare", "several", "graded", "costs"}
