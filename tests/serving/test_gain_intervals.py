"""Bounds from sums of minutes are those of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl.evaluation.sequences import confidence_sequence, difference_sequence
from o2pl.serving.gain_intervals import intervals, judged, nothing, pack, tally, unpack

RANGE = (-1.0, 3.0)


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rewards 3 for action 0 of four and -1 otherwise, half of the time; the service plays it with 0.7."""
    generator = np.random.default_rng(seed)
    p = np.array([0.7, 0.1, 0.1, 0.1])
    action = generator.choice(4, n, p=p)
    rewards = np.where((action == 0) == (generator.random(n) < 0.8), 3.0, -1.0)
    return rewards, 0.25 / p[action], np.where(action == 1, 1 / p[1], 0.0)


def test_minutes_add_up_to_the_sequences_of_the_whole_log() -> None:
    rewards, uniform, baseline = rows(3000)
    total = nothing()
    for part in np.array_split(np.arange(3000), 11):
        total += unpack(pack(tally(rewards[part], RANGE, uniform[part], baseline[part])))
    found = intervals(total, RANGE, 0.1)
    own = confidence_sequence(rewards, 0.1, *RANGE, common=False).last
    assert found["service"] == pytest.approx((3000, *own), abs=2e-3)
    gain = difference_sequence(rewards, RANGE, np.ones(3000), baseline, 0.1, moving=True).last
    assert found["gain over baseline"] == pytest.approx((3000, *gain), abs=2e-3)
    assert found["gain over uniform"].low > 0  # it is better, and the log shows it
    assert found["uniform"].low < -1 + 4 * (0.8 + 3 * 0.2) / 4 < found["uniform"].high


def test_bounds_hold_at_all_times() -> None:
    """Every minute is looked at, in 200 logs: at level .1 about 20 may fail once, 34 or more with probability .001."""
    truth = {"service": -1 + 4 * (0.7 * 0.8 + 0.3 * 0.2), "uniform": -1 + 4 * 0.35, "baseline": -1 + 4 * 0.2}
    truth |= {f"gain over {name}": truth["service"] - truth[name] for name in ("uniform", "baseline")}
    failed = dict.fromkeys(truth, 0)
    for seed in range(200):
        rewards, uniform, baseline = rows(400, seed)
        total, wrong = nothing(), set()
        for part in np.array_split(np.arange(400), 10):
            total += tally(rewards[part], RANGE, uniform[part], baseline[part])
            found = intervals(total, RANGE, 0.1)
            wrong |= {name for name, value in truth.items() if not found[name].low <= value <= found[name].high}
        for name in wrong:
            failed[name] += 1
    assert max(failed.values()) < 34, failed


def test_rows_without_a_baseline_do_not_count_for_it() -> None:
    rewards, uniform, baseline = rows(100)
    baseline[:60] = np.nan
    found = intervals(tally(rewards, RANGE, uniform, baseline), RANGE)
    assert (found["service"].rows, found["baseline"].rows, found["gain over baseline"].rows) == (100, 40, 40)
    none = intervals(tally(rewards, RANGE, uniform, np.full(100, np.nan)), RANGE)
    assert set(none) == {"service", "uniform", "gain over uniform"}
    assert intervals(nothing(), RANGE) == {}


def test_packing_rounds_down() -> None:
    sums = tally(*(rows(500)[:1]), RANGE, *rows(500)[1:])
    again = unpack(pack(sums))
    assert (again <= sums).all()
    np.testing.assert_allclose(again, sums, rtol=2e-7)


def test_the_gain_is_judged_as_everywhere() -> None:
    rewards, uniform, baseline = rows(3000)
    found = intervals(tally(rewards, RANGE, uniform, baseline), RANGE)
    one = judged("the service", "uniform", found, 0.05, 99.0)
    assert one is not None
    assert (one.verdict, one.sign, one.rows, one.interval) == ("better", 1, 3000, found["gain over uniform"][1:])
    assert one.estimate == one.high  # an estimate lies inside its interval
    assert str(one) == "the service is better than uniform decisions, with 95% confidence at any time"
    few = intervals(tally(rewards[:5], RANGE, uniform[:5], np.full(5, np.nan)), RANGE)
    assert judged("the service", "uniform", few, 0.05).verdict == "no difference shown"
    assert judged("the service", "baseline", few, 0.05) is None
