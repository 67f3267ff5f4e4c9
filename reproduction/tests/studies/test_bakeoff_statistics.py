"""The bake-off's statistics against slow references."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from o2pl_reproduction.studies import bakeoff_statistics as statistics


def slow_sign_test(gaps: list[float]) -> float:
    """The share of all sign patterns that are at least as lopsided as this one."""
    signs = [math.copysign(1, gap) for gap in gaps if gap != 0]
    if not signs:
        return 1.0
    patterns = list(itertools.product((-1, 1), repeat=len(signs)))
    return sum(abs(sum(pattern)) >= abs(sum(signs)) for pattern in patterns) / len(patterns)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-0.3, -0.01, 0.0, 0.02, 0.5]), min_size=1, max_size=9))
def test_the_sign_test_counts_patterns(gaps: list[float]) -> None:
    assert statistics.sign_test(np.array([gaps]))[0] == pytest.approx(slow_sign_test(gaps))


def test_a_win_needs_agreeing_seeds_and_a_gap() -> None:
    theirs = np.full((6, 10), 0.5)
    gaps = np.array(
        [
            [0.02] * 10,  # a win, just
            [0.019] * 10,  # agreed on, too small
            [0.1] * 9 + [-0.1],  # nine of ten: p = 22/1024
            [0.1] * 8 + [-0.1] * 2,  # eight of ten: p = 112/1024
            [-0.03] * 10,  # a loss
            [0.0] * 10,
        ]
    )
    assert statistics.by_sign_test(theirs + gaps, theirs).tolist() == [1, 0, 1, 0, -1, 0]
    few = statistics.by_sign_test(theirs[:1, :5] + 0.3, theirs[:1, :5])
    assert few.tolist() == [0]  # five seeds cannot be significant at 5 %, two-sided
    assert statistics.by_sign_test(theirs[:1, :6] + 0.3, theirs[:1, :6]).tolist() == [1]


def test_z_scores_and_one_sided_verdicts() -> None:
    generator = np.random.default_rng(0)
    ours, theirs = generator.uniform(0, 1, (40, 3)), generator.uniform(0, 1, (40, 3))
    played = generator.integers(5, 200, 40)
    for row in range(40):
        p, q = sum(ours[row]) / 3, sum(theirs[row]) / 3
        z = (p - q) / math.sqrt(p * (1 - p) / played[row] + q * (1 - q) / played[row])
        tail = 0.5 * math.erfc(abs(z) / math.sqrt(2))
        expected = int(math.copysign(1, z)) if tail < 0.05 else 0
        assert statistics.z_scores(ours, theirs, played)[row] == pytest.approx(z)
        assert statistics.by_z_test(ours, theirs, played)[row] == expected
    certain = np.array([[1.0], [0.0], [1.0]])
    assert statistics.by_z_test(certain, np.array([[0.0], [0.0], [1.0]]), np.array([9, 9, 9])).tolist() == [1, 0, 0]


def test_wilcoxon_against_all_sign_flips() -> None:
    generator = np.random.default_rng(2)
    for _ in range(5):
        gaps = generator.normal(0.4, 1, 9)
        ranks = np.argsort(np.argsort(np.abs(gaps))) + 1
        found = abs(float(np.sign(gaps) @ ranks))
        flips = [abs(float(np.array(signs) @ ranks)) for signs in itertools.product((-1, 1), repeat=9)]
        exact = sum(flip >= found - 1e-9 for flip in flips) / len(flips)
        assert statistics.wilcoxon_p(np.append(gaps, 0.0)) == pytest.approx(exact)
    assert statistics.wilcoxon_p(np.zeros(5)) == 1.0


def test_records_count_and_average_dk() -> None:
    verdicts, complexity = np.array([1, 1, -1, 0, 1]), np.array([10, 20, 7, 1000, 60])
    record = statistics.record(verdicts, complexity)
    assert (record.wins, record.losses, record.sets, str(record)) == (3, 1, 5, "3/1")
    assert (record.complexity_of_wins, record.complexity_of_losses) == (30.0, 7.0)
    assert record.margin == pytest.approx(0.4)
    none = statistics.record(np.array([0, 0]), np.array([5, 6]))
    assert math.isnan(none.complexity_of_wins)
    assert math.isnan(none.complexity_of_losses)


def test_a_pair_is_all_of_these() -> None:
    generator = np.random.default_rng(3)
    ours, theirs = generator.uniform(0.4, 0.9, (7, 6)), generator.uniform(0.3, 0.8, (7, 6))
    played, complexity = np.full(7, 300), np.arange(1, 8)
    pair = statistics.compare_pair(ours, theirs, played, complexity)
    gaps = [float(np.mean(ours[row]) - np.mean(theirs[row])) for row in range(7)]
    assert pair.gap == pytest.approx(sum(gaps) / 7)
    assert pair.worst == pytest.approx(min(gaps))
    assert gaps[pair.worst_set] == pytest.approx(pair.worst)
    assert pair.by_sign == statistics.record(statistics.by_sign_test(ours, theirs), complexity)
    assert pair.by_z == statistics.record(statistics.by_z_test(ours, theirs, played), complexity)
    reverse = statistics.compare_pair(theirs, ours, played, complexity)
    assert (reverse.by_z.wins, reverse.by_z.losses) == (pair.by_z.losses, pair.by_z.wins)
    assert reverse.wilcoxon == pytest.approx(pair.wilcoxon)


def test_performance_above_chance() -> None:
    scores = statistics.above_chance(np.array([[0.5, 0.5], [1.0, 1.0], [0.1, 0.1]]), np.array([2, 4, 5]))
    np.testing.assert_allclose(scores, [0.0, 1.0, -0.125])
