from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import InvalidInput


def customers(rounds: int, seed: int) -> tuple[Any, Any, Any]:
    """Contexts, what each would pay at most, and the best price of each: who would pay v buys at any price below."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rounds, 3))
    middle = 12 + 2 * x[:, 0]
    return x, middle + generator.logistic(size=rounds), middle


def sold(price: float, worth: float) -> float:
    return float(price) * float(price < worth)


def expected(prices: Any, middle: Any) -> Any:
    return prices / (1 + np.exp(prices - middle))


def test_it_learns_a_price_within_bounds_without_a_scale_to_guess() -> None:
    x, worth, middle = customers(1500, seed=1)
    learner = o2pl.ContinuousBandit((5, 20), reward_range=(0, 20), random_state=0)
    run = learner.run((x, lambda rows, prices: prices * (prices < worth[rows])))
    assert run.actions.min() > 5
    assert run.actions.max() < 20
    grid = np.linspace(5, 20, 200)
    constant = max(expected(price, middle[-500:]).mean() for price in grid)
    best = np.max(expected(grid[:, None], middle[-500:]), axis=0).mean()
    got = expected(run.actions[-500:], middle[-500:]).mean()
    assert got > constant + 0.5 * (best - constant)


def test_it_recovers_a_known_optimum_and_narrows_down_on_it() -> None:
    generator = np.random.default_rng(2)
    x = generator.uniform(-1, 1, size=(1200, 2))
    target, noise = 4 + 2 * x[:, 0], 0.05 * generator.normal(size=1200)
    learner = o2pl.ContinuousBandit((0, 10), random_state=0)
    learner.run((x, lambda rows, a: np.clip(0.9 - ((a - target[rows]) / 5) ** 2 + noise[rows], 0, 1)))
    at = np.array([[-1.0, 0.0], [0.0, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(learner.predict(at), [2, 4, 6], atol=0.5)
    np.testing.assert_allclose(learner.predict_reward(at, [2.0, 4.0, 6.0]), 0.9, atol=0.05)
    assert learner.predict_moments(at)[1].max() < 1.5  # it began with 2.9, that of all actions alike


def test_two_peaks_are_told_apart() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(2500, 2))
    chance = generator.random(2500)

    def reward(rows: Any, a: Any) -> Any:
        left = x[rows, 0] > 0
        return (chance[rows] < 0.1 + 0.8 * np.exp(-((a - np.where(left, 2, 8)) ** 2))).astype(float)

    learner = o2pl.ContinuousBandit((0, 10), random_state=0)
    run = learner.run((x, reward))
    np.testing.assert_allclose(learner.predict([[1.5, 0.0], [-1.5, 0.0]]), [2, 8], atol=1)
    assert run.rewards[-500:].mean() > 0.6


def test_what_is_near_in_ratio_is_near_where_bounds_are_far_apart() -> None:
    spacing = {bounds: o2pl.ContinuousBandit(bounds)._cells().log for bounds in ((1, 60), (5, 20), (0, 60), (-3, 60))}
    assert spacing == {(1, 60): True, (5, 20): False, (0, 60): False, (-3, 60): False}
    assert o2pl.ContinuousBandit((5, 20), spacing="log")._cells().log
    assert not o2pl.ContinuousBandit((1, 60), spacing="linear")._cells().log


def test_exploration_keeps_every_density_above_a_floor() -> None:
    x, worth, _ = customers(300, seed=4)
    learner = o2pl.ContinuousBandit((5, 20), reward_range=(0, 20), exploration=0.1, random_state=0)
    learner.run((x, lambda rows, prices: prices * (prices < worth[rows])))
    grid = np.linspace(5.01, 19.99, 50)
    assert learner.predict_density(np.tile(x[0], (50, 1)), grid).min() >= 0.1 / 15 * (1 - 1e-9)


def test_wide_contexts_and_one_column_and_names() -> None:
    for width in (1, 12):
        learner = o2pl.ContinuousBandit((0, 1), random_state=0)
        for _ in range(30):
            decision = learner.act(np.ones(width))
            learner.update(decision, decision.action)
        assert learner.predict(np.ones((1, width)))[0] > 0.5
    named = o2pl.ContinuousBandit((0, 1), random_state=0)
    named.update(named.act({"city": "Rome", "age": 31}), 0.5)
    assert 0 < named.act({"city": "Oslo", "age": None}).action < 1


def test_it_goes_on_from_its_file_and_is_published_without_its_log(tmp_path: Path) -> None:
    x, worth, _ = customers(120, seed=5)
    learner = o2pl.ContinuousBandit((5, 20), reward_range=(0, 20), random_state=0)
    learner.run((x, lambda rows, prices: prices * (prices < worth[rows])))
    learner.save(tmp_path / "prices.o2pl")
    again = o2pl.load(tmp_path / "prices.o2pl")
    assert again.get_params() == learner.get_params()
    for one in x[:20]:
        ours, theirs = learner.act(one), again.act(one)
        assert tuple(ours) == tuple(theirs)
        for each in (learner, again):
            each.update(one, ours.action, sold(ours.action, 11.0), ours.propensity)
    decider = learner.snapshot()
    decider.save(tmp_path / "decider.o2pl")
    served = o2pl.load(tmp_path / "decider.o2pl")
    for uniform in (0.0, 0.3, 0.9):
        assert tuple(served.decide(x[0], uniform)) == tuple(decider.decide(x[0], uniform))


def test_weights_of_its_own_log_are_right() -> None:
    """Calibration: the value of another policy, estimated from the log of a learner that learns, over many logs."""
    values = []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        x = generator.normal(size=(80, 1))
        learner = o2pl.ContinuousBandit((0, 1), exploration=0.3, random_state=seed)
        run = learner.run((x, lambda rows, a: a**2))
        weights = np.where(run.actions > 0.5, 2.0, 0.0) / run.propensities  # the policy: uniform on (1/2, 1)
        values.append(np.mean(weights * run.rewards))
    truth = (1 - 0.5**3) / 3 / 0.5
    assert np.mean(values) == pytest.approx(truth, abs=4 * np.std(values) / np.sqrt(len(values)))
    assert np.std(values) / np.sqrt(len(values)) < 0.05


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "lowest and the highest action"),
        ({"bounds": (5, 20), "spacing": "ratio"}, '"auto", "linear" or "log"'),
        ({"bounds": (0, 20), "spacing": "log"}, "lowest action > 0"),
        ({"bounds": (5, 20), "features": "linear"}, "feature map"),
        ({"bounds": (5, 20), "exploration": 2}, "exploration"),
        ({"bounds": (5, 20), "cells": 0}, "cells"),
        ({"bounds": "5-20"}, "pair"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        o2pl.ContinuousBandit(**settings).act([1.0])


def test_it_warns_of_nothing_on_rewards_that_never_change() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = o2pl.ContinuousBandit((0, 1), random_state=0)
        for _ in range(200):
            learner.update(learner.act([1.0, 2.0]), 0.0)
        assert 0 < learner.act([1.0, 2.0]).propensity < np.inf
