"""Several candidates: promises kept together, elimination, segments, and how many more rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.evaluation.cases import LOGGER, MEANS, dropped_log, log_of, policy

import o2pl
from o2pl import Candidates, InvalidInput, evaluate
from o2pl.evaluation.candidates import as_candidates, more_rows_for_candidates
from o2pl.theory.inequality import refutes


def always(action: int) -> Any:
    return lambda x: np.tile(np.eye(3)[action], (len(x), 1))


POLICIES = {"first": always(0), "second": always(1), "third": always(2), "logged": "logged"}
TRUTH = {"first": MEANS[0], "second": MEANS[1], "third": MEANS[2], "logged": LOGGER @ MEANS}


def test_the_best_leads_and_the_others_are_out() -> None:
    found = evaluate(log_of(4000), POLICIES)
    assert isinstance(found, Candidates)
    assert found.best == "third"
    assert found.overall.decided
    assert [one.name for one in found.overall.candidates] == ["third", "second", "logged", "first"]
    assert all(one.out_at is not None and 10 < one.out_at < 4000 for one in found.overall.candidates[1:])
    for one in found.overall.candidates:
        assert one.low < TRUTH[one.name] < one.high
        assert one.behind <= MEANS[2] - TRUTH[one.name] + 1e-9
    assert found.verdict == "third is the best of 4, with 95% confidence at any time"
    assert "worse with confidence since row" in str(found)
    assert "third" in found._repr_html_()


def test_all_statements_hold_together() -> None:
    """Misses of any interval or any elimination of the best, over many logs; four policies and two segments."""
    missed = 0
    for seed in range(60):
        log = log_of(300, seed)
        found = evaluate(log, POLICIES, segments=np.arange(300) % 2, delta=0.2)
        wrong = [
            not one.low <= TRUTH[one.name] <= one.high or one.behind > TRUTH[contest.leader.name] - TRUTH[one.name]
            for contest in (found.overall, *found.segments)
            for one in contest.candidates
            if one is not contest.leader
        ]
        missed += any(wrong)
    assert not refutes(missed, 60, 0.2, 1e-3)


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 5.0)])
def test_candidates_are_judged_as_one_by_one(ends: tuple[float, float]) -> None:
    """Intervals, advantages and rows of elimination, against the whole sequences of single policies and pairs."""
    log, count, (low, high) = log_of(9000, seed=2), 7, ends
    rewards = low + (high - low) * log.rewards
    log = log.changed(rewards=rewards, reward_range=ends)
    g = np.random.default_rng(5)
    tables = {f"policy {k}": g.dirichlet(np.ones(3), 9000) for k in range(count - 2)}
    tables |= {"first": np.tile([1.0, 0, 0], (9000, 1)), "third": np.tile([0, 0, 1.0], (9000, 1))}
    found = evaluate(log, tables, delta=0.1).overall
    for one in found.candidates:
        alone = evaluate(log, tables[one.name], at_any_time=True, delta=0.1 / (2 * count))
        assert (one.low, one.high) == pytest.approx(alone.interval, abs=1e-9)
        if one is not found.leader:
            level = 2 * 0.05 / (count * (count - 1))
            pair = evaluate(log, tables[found.leader.name], baseline=tables[one.name], at_any_time=True, delta=level)
            assert pair.difference is not None
            assert one.behind == pytest.approx(pair.difference.low, abs=1e-9)
            bounds = pair.difference_sequence.lower
            assert one.out_at == (int(np.argmax(bounds > 0)) if bounds[-1] > 0 else None)
            assert one.eliminated == pair.judgement.better
    assert any(one.eliminated for one in found.candidates)


def test_candidates_on_rows_that_the_logger_dropped() -> None:
    """Values are weighted; bounds use rows of equal standing, and say so. Counted once, the best is out."""
    weighted, once, truth = dropped_log(20_000)
    three = {name: always(k) for k, name in enumerate(("first", "second", "third"))}
    found, wrong = evaluate(weighted, three), evaluate(once, three)
    assert found.best == "third"
    assert wrong.best == "first"
    assert any(one.name == "third" and one.eliminated for one in wrong.overall.candidates)
    assert found.overall.leader.low < truth < found.overall.leader.high
    assert found.overall.leader.value == pytest.approx(truth, abs=0.03)
    assert found.overall.n < len(weighted) / 2
    second = next(one for one in found.overall.candidates if one.name == "second")
    assert second.out_at in weighted.thinned_rows()  # a row of the whole log
    assert "Anytime-valid intervals, drift and the test of the propensities cannot, and use" in str(found)


def test_few_rows_leave_it_open_and_say_how_many_more() -> None:
    found = evaluate(log_of(150), {"second": always(1), "third": always(2)}, rows_per_day=100)
    assert not found.overall.decided
    needed = found.overall.rows_needed
    assert 0 < needed < 5000
    assert "may each be the best" in found.verdict
    assert "days at 100 rows per day" in found.verdict
    ratios = []
    for seed in range(9):  # what was predicted after 200 rows, against the row at which it was decided
        log, two = log_of(4000, seed), {"second": always(1), "third": always(2)}
        predicted = 200 + evaluate(log[:200], two).overall.rows_needed
        decided = evaluate(log, two).overall.candidates[1].out_at
        assert decided is not None
        ratios.append(predicted / decided)
    assert 1 / 3 < np.median(ratios) < 3
    assert more_rows_for_candidates(0.1, 0.2, 100) == pytest.approx(100 * (1.1 * 4 - 1))
    assert more_rows_for_candidates(0.0, 0.2, 100) == np.inf
    same = evaluate(log_of(150), [policy, policy])
    assert "no reasonable number of rows" in same.verdict


def test_segments_are_contests_of_their_own() -> None:
    """Which action pays depends on the segment."""
    g = np.random.default_rng(0)
    n = 4000
    where = g.choice(["north", "south"], n)
    actions = g.integers(2, size=n)
    rewards = (g.random(n) < np.where((where == "north") == (actions == 1), 0.8, 0.2)) * 1.0
    import pandas as pd

    frame = pd.DataFrame({"x": g.normal(size=n), "where": where})
    log = o2pl.Interactions(frame, actions, rewards, np.full(n, 0.5), reward_range=(0, 1), n_actions=2)
    two = {"zero": lambda x: np.tile([1.0, 0.0], (len(x), 1)), "one": lambda x: np.tile([0.0, 1.0], (len(x), 1))}
    found = evaluate(log, two, segments="where")
    assert not found.overall.decided
    north, south = found.segments
    assert (north.rows, north.leader.name, north.decided) == ("north", "one", True)
    assert (south.rows, south.leader.name, south.decided) == ("south", "zero", True)
    assert "north (n = " in str(found)
    with pytest.raises(
        InvalidInput, match="segments: found 'w', expected labels or one of the context's columns: x, where"
    ):
        evaluate(log, two, segments="w")
    few = evaluate(log, two, segments=np.where(np.arange(n) < 10, "new", "old"))
    assert [one.rows for one in few.segments] == ["old"]
    assert any("skipped: new" in warning for warning in few.warnings)


def test_what_counts_as_several() -> None:
    assert as_candidates({"a": policy}) == {"a": policy}
    assert list(as_candidates([policy, "uniform"]) or ()) == ["policy 0", "uniform"]
    assert as_candidates([0.5, 0.5]) is None
    assert as_candidates([[0.5, 0.5]]) is None
    assert as_candidates(policy) is None
    with pytest.raises(InvalidInput, match="found 1 candidates"):
        evaluate(log_of(50), {"a": policy})
    with pytest.raises(InvalidInput, match="reward_range: found None"):
        evaluate(log_of(50, reward_range=None), [policy, "uniform"])
    with pytest.raises(InvalidInput, match="segments: found with one policy"):
        evaluate(log_of(50), policy, segments=np.zeros(50))
    wrong = evaluate(log_of(propensities=np.full(2000, 1 / 3)), [policy, "uniform"], baseline="logged")
    assert wrong.verdict.startswith("no conclusion: the logged propensities do not match")
    assert {one.name for one in wrong.overall.candidates} == {"policy 0", "uniform", "logged"}
