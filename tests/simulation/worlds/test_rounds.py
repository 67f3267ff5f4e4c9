from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds.rounds import TableRounds, bernoulli_rounds, check_rounds, require_for_rounds

from .checks import assert_mean_is


def test_tables_are_read_row_by_row() -> None:
    table = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    rounds = TableRounds(np.zeros((3, 1), np.float32), table, table / 10)
    assert len(rounds) == 3
    np.testing.assert_array_equal(rounds.rewards(np.array([2, 0]), np.array([1, 0])), [5, 0])
    np.testing.assert_array_equal(rounds.expected(np.array([2, 0]), np.array([1, 0])), [0.5, 0])
    np.testing.assert_array_equal(rounds.best, [0.1, 0.3, 0.5])


def test_bernoulli_rewards_have_their_means() -> None:
    means = np.tile([0.2, 0.7], (4000, 1))
    rounds = bernoulli_rounds(np.zeros((4000, 1), np.float32), means, np.random.default_rng(0))
    assert set(np.unique(rounds.table)) == {0.0, 1.0}
    for action in range(2):
        assert_mean_is(rounds.table[:, action], means[0, action])


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "3"])
def test_a_number_of_rounds_is_a_whole_number_from_1(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="rounds: found"):
        check_rounds(wrong)
    assert check_rounds(np.int64(4)) == 4


def test_settings_that_are_not_fine_are_named() -> None:
    require_for_rounds(True, "scale", 1, "a number > 0")
    with pytest.raises(InvalidInput, match="scale: found -1, expected a number > 0"):
        require_for_rounds(False, "scale", -1, "a number > 0")
