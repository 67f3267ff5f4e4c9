"""Quantiles and tails against their exact values; bands that hold at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from tests.evaluation.cases import LOGGER, POLICY, log_of, policy

from o2pl import Interactions, InvalidInput, evaluate_quantiles
from o2pl.evaluation.quantiles import Band

SHIFT = np.array([0.0, 1.0, 2.0])  # rewards are normal around it
LEVELS = np.linspace(0.05, 0.95, 19)


def normal_log(n: int, seed: int, **changes: Any) -> Interactions:
    g = np.random.default_rng(seed)
    actions = g.choice(3, n, p=LOGGER)
    rewards = SHIFT[actions] + g.normal(size=n)
    return Interactions(g.normal(size=(n, 2)), actions, rewards, LOGGER[actions], **({"n_actions": 3} | changes))


def cdf(x: Any, shares: Any = POLICY) -> Any:
    return sum(share * norm.cdf(x - shift) for share, shift in zip(shares, SHIFT, strict=True))


GRID = np.linspace(-6, 8, 200_001)
EXACT = np.interp(LEVELS, cdf(GRID), GRID)


def test_all_quantiles_hold_at_once() -> None:
    """Of 60 logs at most 10 % + luck may miss anywhere: 14 or more with probability 2e-3."""
    missed = 0
    for seed in range(60):
        found = evaluate_quantiles(normal_log(500, seed), policy, levels=LEVELS.tolist(), delta=0.1)
        missed += any(
            not one.low <= exact <= one.high for one, exact in zip(found.quantiles.values(), EXACT, strict=True)
        )
    assert missed < 14


def test_many_rows_narrow_the_band() -> None:
    log = normal_log(20_000, 1, reward_range=(-10, 10))
    found = evaluate_quantiles(log, policy, levels=LEVELS.tolist(), worst=[0.2])
    for one, exact in zip(found.quantiles.values(), EXACT, strict=True):
        assert one.value == pytest.approx(exact, abs=0.12)
        assert one.low <= one.value <= one.high
    middle = found.quantiles[LEVELS[9]]
    assert middle.high - middle.low < 0.5
    below = GRID[cdf(GRID) <= 0.2]
    mass = np.diff(cdf(below), prepend=0.0)
    worst = found.tails[0.2]
    assert worst.value == pytest.approx(float(mass @ below) / 0.2, abs=0.15)
    assert worst.low < float(mass @ below) / 0.2 < worst.high


def test_rewards_of_two_values() -> None:
    """P(r = 1) is about .65 under the policy: the median is 1, the lower quartile 0, without doubt."""
    log = log_of(4000)
    found = evaluate_quantiles(log, policy, levels=[0.25, 0.5], worst=[0.5])
    assert [(one.low, one.value, one.high) for one in found.quantiles.values()] == [(0, 0, 0), (1, 1, 1)]
    share = float(np.average(log.rewards, weights=POLICY[log.actions] / log.propensities))
    assert found.tails[0.5].value == pytest.approx((0.5 - (1 - share)) / 0.5, abs=1e-9)


def test_differences_from_a_baseline_are_judged() -> None:
    log = normal_log(4000, 2)
    found = evaluate_quantiles(log, policy, baseline="logged", levels=[0.5], worst=[])
    assert found.judgements["0.5 quantile"].verdict == "better"
    assert "0.5 quantile: policy is better than logged, with 95% confidence (jointly for all quantiles)" in str(found)
    same = evaluate_quantiles(log, "logged", baseline="logged", levels=[0.5], worst=[0.1])
    assert {one.verdict for one in same.judgements.values()} == {"no difference shown"}
    wrong = log.changed(propensities=np.ones(4000))
    assert evaluate_quantiles(wrong, policy, baseline="logged").judgements["0.5 quantile"].verdict == "cannot be judged"
    assert "deterministic" in evaluate_quantiles(wrong, policy).verdict


def test_an_unknown_range_leaves_the_tail_open() -> None:
    found = evaluate_quantiles(normal_log(300, 3), policy, levels=[0.001, 0.999], worst=[0.05])
    first, last = found.quantiles.values()
    assert first.low == -np.inf
    assert last.high == np.inf
    assert found.tails[0.05].low == -np.inf


def test_bounds_are_inverted_exactly() -> None:
    band = Band(
        np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.5, 1.0]), np.array([0.2, 0.4, 0.8]),
        np.array([1.0, 2.0, 3.0]), np.array([0.3, 0.6, 1.0]), (0.0, 3.0),
    )  # fmt: skip
    assert band.quantile(0.15) == (1.0, 0.0, 2.0)
    assert band.quantile(0.3) == (1.0, 1.0, 2.0)
    assert band.quantile(0.9) == (3.0, 3.0, 3.0)
    estimate, low, high = band.tail(0.3)
    assert estimate == pytest.approx(1.0)
    assert low == pytest.approx((0.2 * 0 + 0.1 * 1) / 0.3)
    assert high == pytest.approx((0.1 * 1 + 0.2 * 2) / 0.3)


def test_arguments_that_cannot_be_used() -> None:
    log = log_of(300)
    with pytest.raises(InvalidInput, match=r"levels and worst: found 1\.5"):
        evaluate_quantiles(log, policy, levels=[1.5])
    with pytest.raises(InvalidInput, match="propensities: found None"):
        evaluate_quantiles(log.changed(propensities=None), policy)
