"""The checks at the door, one by one; tests/learners/test_bad_input.py has learners refuse the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.validation import (
    check_actions,
    check_context,
    check_contexts,
    check_continuous_actions,
    check_count,
    check_lengths,
    check_number,
    check_pair,
    check_propensities,
    check_reward,
    check_reward_range,
    check_rewards,
    to_loss,
    to_reward,
)

NAN = float("nan")
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: check_contexts([[1, 2], [3, NAN]]), "context, row 1, feature 1: found nan"),
    (lambda: check_contexts([[1e39]]), "below 3e38"),
    (lambda: check_contexts([[[1.0], [2.0]]]), "context: found a matrix of 2 rows, expected one row; `act_many`"),
    (lambda: check_contexts([[1.0]], width=2), r"found shape \(1, 1\), expected \(rows, 2\)"),
    (lambda: check_context(["x"]), "context: expected numbers"),
    (lambda: check_context([[1.0]]), r"context: found shape \(1, 1\)"),
    (lambda: check_rewards([0.0, 1.5], (0, 1)), r"reward, row 1: found 1.5, expected a number in \[0, 1\]"),
    (lambda: check_reward(NAN, (0, 1)), "reward, row 0: found nan"),
    (
        lambda: check_rewards([0.0, 37.5], (0, 1)),
        r"if other rewards are possible, say which: reward_range=\(0, 37.5\)$",
    ),
    (lambda: check_reward(-1, (0, 1)), r"reward_range=\(-1, 1\) \(a cost\? costs are negative rewards"),
    (lambda: check_reward(-np.inf, (0, 1)), r"reward_range=\(lowest, highest\)"),
    (lambda: check_rewards(["1", "0"], (0, 1)), "reward: expected numbers .found '1', a string"),
    (lambda: check_rewards(np.array(["1", 0], object), (0, 1)), "reward: expected numbers .found '1', a string"),
    (lambda: check_propensities([0.5, 0.0]), "propensity, row 1: found 0.0"),
    (lambda: check_propensities([2.0]), "a probability in"),
    (lambda: check_propensities([float("inf")], density=True), "a finite density"),
    (lambda: check_actions([0, 3], 3), "action, row 1: found 3, expected an integer from 0 to 2"),
    (lambda: check_actions([0.5]), "expected integers from 0"),
    (lambda: check_actions([1, 1], np.array([2, 1])), "action, row 1: found 1, expected an integer from 0 to 0"),
    (lambda: check_continuous_actions([1.0, NAN]), "action, row 1: found nan"),
    (lambda: check_reward_range((1, 1)), "lowest < highest"),
    (lambda: check_reward_range(3), "expected a pair"),
    (lambda: check_count("n", True), "n: found True"),
    (lambda: check_number("x", 0, 0, open_low=True), "x: found 0, expected a finite number > 0"),
    (lambda: check_number("x", 1, 0, below=1), "≥ 0 and < 1"),
    (lambda: check_pair("costs", (1, 0)), "best < worst"),
    (lambda: check_lengths(contexts=[[1.0]], rewards=[0, 1]), "columns differ in length"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_is_wrong_is_said(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        call()


def test_what_is_fine_comes_back_typed() -> None:
    assert check_contexts([[1, 2]]).dtype == np.float32
    assert check_actions(np.array([1.0, 2.0])).dtype == np.int64
    assert check_propensities([3.0], density=True).tolist() == [3.0]


def test_losses_and_rewards_are_each_others_inverse() -> None:
    rewards = np.array([-2.0, 0.0, 6.0])
    np.testing.assert_allclose(to_loss(rewards, (-2.0, 6.0)), [0, -0.25, -1])
    np.testing.assert_allclose(to_reward(to_loss(rewards, (-2.0, 6.0)), (-2.0, 6.0)), rewards)
