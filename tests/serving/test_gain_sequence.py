"""What one group earns above another: beside a plain loop, and that its promise is kept at every look."""

from __future__ import annotations

import math

import numpy as np
import pytest

from o2pl.serving.gain_sequence import Contrast, added, gain, judged
from o2pl.theory.betting import BETS, LOG_SHARES


def slow_low(values: list[tuple[float, bool]], share: float, delta: float, sign: int) -> float:
    """The largest gain whose capital has reached 1/δ, by bisection over the definition."""
    B, seen, count, xs = max(1 / share, 1 / (1 - share)), 0.5, 1, []
    for u, control in values:
        d = (-1 / share if control else 1 / (1 - share)) * (u - seen / count)
        xs.append((B + sign * d) / (B + 1))
        seen, count = seen + u, count + 1

    def capital(m: float) -> float:
        logs = [w + sum(math.log((1 + k * x) / (1 + k * m)) for x in xs) for w, k in zip(LOG_SHARES, BETS, strict=True)]
        return sum(math.exp(one) for one in logs)

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if capital(middle) >= 2 / delta else (low, middle)
    return max((B + 1) * low - B, -1.0)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_intervals_are_those_of_a_plain_loop(share: float) -> None:
    g = np.random.default_rng(0)
    control = g.random(150) < share
    rewards = g.random(150) * np.where(control, 0.3, 1.0)
    sums = Contrast()
    for some in (slice(0, 40), slice(40, 41), slice(41, 150)):
        sums = added(sums, 2 * rewards[some] - 1, control[some], share, (-1.0, 1.0))
    found = gain(sums, share, (-1.0, 1.0), 0.1)
    values = list(zip(rewards.tolist(), control.tolist(), strict=True))
    assert found.low == pytest.approx(2 * slow_low(values, share, 0.1, 1), abs=1e-6)
    assert found.high == pytest.approx(-2 * slow_low(values, share, 0.1, -1), abs=1e-6)
    means = [2 * rewards[~control].mean() - 1, 2 * rewards[control].mean() - 1]
    assert found.means == pytest.approx(means)
    assert found.estimate == pytest.approx(means[0] - means[1])


def test_it_narrows_to_the_gain() -> None:
    g, sums, widths = np.random.default_rng(1), Contrast(), []
    for _ in range(5):
        control = g.random(20_000) < 0.1
        sums = added(sums, (g.random(20_000) < np.where(control, 0.10, 0.13)).astype(float), control, 0.1, (0.0, 1.0))
        found = gain(sums, 0.1, (0.0, 1.0), 0.05)
        assert found.low <= 0.03 <= found.high
        widths.append(found.high - found.low)
    assert widths[-1] < 0.5 * widths[0]
    assert widths[-1] < 2.5 * 2 * 1.96 * math.sqrt(0.1 * 0.9 / 1e5 / (0.1 * 0.9))
    assert judged(found, 100_000, 0.05).verdict == "better"
    assert judged(found, 100_000, 0.05, lower_is_better=True).verdict == "worse"
    assert judged(found, 100_000, 0.05, lower_is_better=True, tolerance=0.05).sign > 0  # not worse by more than that


@pytest.mark.parametrize(("share", "mean"), [(0.5, 0.5), (0.1, 0.02), (0.05, 0.9)])
def test_same_arms_are_told_apart_in_few_runs_whenever_one_looks(share: float, mean: float) -> None:
    """200 runs of 60 looks at 5 %: more than 18 have probability .01, if the promise was just kept."""
    wrong = 0
    for seed in range(200):
        g, sums, seen = np.random.default_rng(seed), Contrast(), False
        for look in range(60):
            control = g.random(50) < share
            drifting = mean + 0.09 * math.sin(look / 5) * (mean < 0.9)
            sums = added(sums, (g.random(50) < drifting).astype(float), control, share, (0.0, 1.0))
            found = gain(sums, share, (0.0, 1.0), 0.05)
            seen = seen or not found.low <= 0 <= found.high
        wrong += seen
    assert wrong <= 18


def test_no_units_of_one_group_say_nothing() -> None:
    sums = added(Contrast(), np.ones(3), np.zeros(3, bool), 0.1, (0.0, 1.0))
    found = gain(sums, 0.1, (0.0, 1.0), 0.05)
    assert found.low < 0 < found.high
    assert math.isnan(found.means[1])
    assert gain(Contrast(), 0.1, (0.0, 1.0), 0.05)[1:3] == (-1.0, 1.0)
