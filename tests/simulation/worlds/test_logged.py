from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds import (
    BernoulliTask,
    Embedded,
    MulticlassLog,
    SoftmaxLogger,
    SyntheticLog,
    make_dataset,
    overlap,
)

from .checks import assert_mean_is


def slow_mean(task: BernoulliTask, x: np.ndarray, action: int) -> float:
    """The definitions, with plain sums; θ and η as the task draws them."""
    draws = np.random.default_rng(task.seed).standard_normal((2, task.n_actions, task.features))
    theta, eta = draws[:, action] / math.sqrt(task.features)
    along = sum(float(a) * float(b) for a, b in zip(x, theta, strict=True))
    if task.reward == "linear":
        return 0.5 + 0.5 * along / sum(abs(t) for t in theta)
    if task.reward == "logistic":
        return 1 / (1 + math.exp(-task.signal * along))
    across = abs(sum(float(a) * float(b) for a, b in zip(x, eta, strict=True)))
    usual = math.sqrt(2 / math.pi) * math.sqrt(sum(e * e for e in eta))
    return 1 / (1 + math.exp(-task.signal * (along / 2 + across - usual)))


@pytest.mark.parametrize("reward", ["logistic", "linear", "misspecified"])
def test_means_are_those_of_the_definitions(reward: str) -> None:
    task = BernoulliTask(reward, features=4, n_actions=3, signal=1.5, seed=7)
    rounds = task.sample(30, np.random.default_rng(0))
    slow = [[slow_mean(task, x, a) for a in range(3)] for x in rounds.contexts]
    np.testing.assert_allclose(rounds.expected_table, slow, rtol=1e-6)
    assert rounds.expected_table.min() >= 0
    assert rounds.expected_table.max() <= 1


def test_misspecified_means_hide_from_linear_models() -> None:
    """The even part: centred, and uncorrelated with every feature."""
    task = BernoulliTask("misspecified", features=3, n_actions=2, signal=1.0)
    x = task.draw_contexts(20000, np.random.default_rng(1)).astype(float)
    logits = np.log(task.means(x) / (1 - task.means(x)))
    even = logits - 0.5 * x @ task.weights.T
    for action in range(2):
        assert even[:, action].std() > 0.3
        assert_mean_is(even[:, action], what="centred")
        for feature in range(3):
            assert_mean_is(even[:, action] * x[:, feature], what=f"feature {feature}")


def test_the_logger_is_a_softmax_with_a_floor() -> None:
    theta = np.random.default_rng(2).standard_normal((3, 2))
    x = np.random.default_rng(3).standard_normal((5, 2)).astype(np.float32)
    logger = SoftmaxLogger(sharpness=4.0, epsilon=0.3, quality=1.0)
    directions = [row / math.hypot(*row) for row in theta]
    for context, probabilities in zip(x.astype(float), logger.probabilities(x, theta), strict=True):
        powers = [math.exp(4 * (context[0] * v[0] + context[1] * v[1])) for v in directions]
        np.testing.assert_allclose(probabilities, [0.7 * p / sum(powers) + 0.1 for p in powers])


def test_overlap_diagnostics() -> None:
    table = np.array([[0.5, 0.5, 0.0], [0.2, 0.2, 0.6]])
    found = overlap(table)
    assert found.minimum == pytest.approx(0.1)
    assert found.maximum == pytest.approx(0.55)
    assert found.entropy == pytest.approx((math.log(2) - 0.4 * math.log(0.2) - 0.6 * math.log(0.6)) / 2)


def test_a_smaller_floor_means_less_overlap_and_quality_means_value() -> None:
    def logged(epsilon: float, quality: float = 0.0) -> SyntheticLog:
        return SyntheticLog(logger=SoftmaxLogger(5.0, epsilon, quality), evaluation_rows=5000)

    sweep = [logged(epsilon).log(2000, np.random.default_rng(4)).overlap for epsilon in (1.0, 0.3, 0.05, 0.005)]
    assert sweep[0] == pytest.approx((0.2, 0.2, math.log(5)))
    for more, less in pairwise(sweep):
        assert more.minimum > less.minimum
        assert more.maximum < less.maximum
        assert more.entropy > less.entropy
    values = [logged(0.1, quality).log(10, np.random.default_rng(5)).logger_value for quality in (-1.0, 0.0, 1.0)]
    assert values[0] < values[1] - 0.1 < values[2] - 0.2


def test_policies_are_valued_on_the_same_contexts_whatever_the_seed() -> None:
    first, other = (SyntheticLog(evaluation_rows=100).log(20, np.random.default_rng(seed)) for seed in (1, 2))
    np.testing.assert_array_equal(first.contexts, other.contexts)
    np.testing.assert_array_equal(first.means, other.means)


def test_a_multiclass_log_splits_its_rows() -> None:
    n = 1000
    y = np.random.default_rng(6).integers(0, 3, n)
    X = np.stack([np.arange(n), np.eye(3)[y] @ [0.0, 3.0, 9.0]], axis=1)
    source = make_dataset(X, y)
    task = MulticlassLog(source, logger_share=0.1, test_share=0.25, epsilon=0.3)
    logged = task.log(5000, np.random.default_rng(7))
    in_log, there = (set(rows[:, 0].astype(int)) for rows in (logged.interactions.contexts, logged.contexts))
    assert (len(in_log), len(there), len(in_log & there)) == (650, 250, 0)
    labels = y[logged.interactions.contexts[:, 0].astype(int)]
    np.testing.assert_array_equal(logged.interactions.rewards, logged.interactions.actions == labels)
    np.testing.assert_array_equal(logged.means, np.eye(3)[y[logged.contexts[:, 0].astype(int)]])
    assert logged.logger_value > 0.6  # it has learned something from its own rows
    plain = (logged.logging - 0.1) / 0.7  # the logistic regression itself, without the floor
    sharp = replace(task, sharpness=2.0).log(5000, np.random.default_rng(7))
    np.testing.assert_allclose(sharp.logging, 0.7 * plain**2 / (plain**2).sum(axis=1, keepdims=True) + 0.1)


def test_a_class_unknown_to_the_logger_gets_the_floor() -> None:
    y = np.zeros(400, np.int64)
    y[200:] = 1
    y[399] = 2
    X = np.random.default_rng(8).standard_normal((400, 2)) + y[:, None]
    for seed in range(20):
        logged = MulticlassLog(make_dataset(X, y), epsilon=0.3).log(400, np.random.default_rng(seed))
        if np.allclose(logged.logging[:, 2], 0.1):
            break
    else:
        pytest.fail("class 2 has one row of 400: in most splits the logger does not see it")


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="reward"):
        BernoulliTask("cubic")
    with pytest.raises(InvalidInput, match="epsilon"):
        SoftmaxLogger(epsilon=2.0)
    with pytest.raises(InvalidInput, match="share"):
        MulticlassLog(Embedded("iris"), logger_share=0.6, test_share=0.5)
    one_of_a_kind = MulticlassLog(make_dataset(np.arange(100.0)[:, None], [0] * 99 + [1]))
    with pytest.raises(InvalidInput, match="one class"):
        one_of_a_kind.log(10, np.random.default_rng(0))
