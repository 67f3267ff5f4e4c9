from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluation.slow_sequences import slow_betting, slow_plugin, slow_realized

from o2pl import InvalidInput
from o2pl.evaluation.sequences import (
    SEQUENCE_METHODS,
    confidence_sequence,
    weighted_sequence,
)

DELTA = 0.08


SLOW: dict[str, Any] = {"betting": slow_betting, "plugin": slow_plugin, "realized": slow_realized}


@pytest.mark.parametrize("method", SEQUENCE_METHODS)
@pytest.mark.parametrize("shape", ["coin", "small", "weights"])
def test_against_a_slow_reference(method: Any, shape: str) -> None:
    generator = np.random.default_rng(0)
    n = 120
    if shape == "weights":
        w, r = generator.exponential(1.0, n) * 3, generator.random(n)
        found = weighted_sequence(w, r * 4 - 1, DELTA, (-1.0, 3.0), clip=6.0, method=method)
        low: Any = np.minimum(w, 6) * r
        high: Any = np.minimum(w, 6) * (1 - r)
        scale, start = 4.0, -1.0
    else:
        x = (generator.random(n) < 0.7) * 1.0 if shape == "coin" else generator.beta(2, 30, n)
        found = confidence_sequence(5 * x - 2, DELTA, -2.0, 3.0, method)
        low, high, scale, start = x, 1 - x, 5.0, -2.0
    expected = [np.maximum.accumulate(SLOW[method](side, DELTA / 2)) for side in (low, high)]
    np.testing.assert_allclose(found.lower, start + scale * np.minimum(expected[0], 1), atol=1e-8)
    np.testing.assert_allclose(found.upper, start + scale * (1 - np.minimum(expected[1], 1)), atol=1e-8)
    assert found.lower[-1] > start or shape == "small"
    assert found.upper[-1] < start + scale


@pytest.mark.parametrize("mean", [0.5, 0.95, 0.01])
def test_betting_is_the_narrowest(mean: float) -> None:
    """At a thousand rows, means over seeds: below "plugin", which is below "realized"."""
    widths = np.zeros(3)
    for seed in range(10):
        x = (np.random.default_rng(seed).random(1000) < mean) * 1.0
        ends = [confidence_sequence(x, DELTA, method=method).last for method in SEQUENCE_METHODS]
        widths += [high - low for low, high in ends]
    assert widths[0] < widths[1] < widths[2] < 1.4 * widths[1]


@pytest.mark.parametrize("method", ["betting", "realized"])
def test_means_that_differ_are_not_intersected(method: Any) -> None:
    x = np.random.default_rng(1).random(80)
    found = confidence_sequence(x, DELTA, method=method, common=False)
    np.testing.assert_allclose(found.lower, SLOW[method](x, DELTA / 2), atol=1e-8)
    np.testing.assert_allclose(1 - found.upper, SLOW[method](1 - x, DELTA / 2), atol=1e-8)
    assert (np.diff(found.lower) < 0).any()


@pytest.mark.parametrize("method", SEQUENCE_METHODS)
def test_later_rows_do_not_change_earlier_intervals(method: Any) -> None:
    x = np.random.default_rng(2).random(5000)
    whole, part = confidence_sequence(x, DELTA, method=method), confidence_sequence(x[:3333], DELTA, method=method)
    np.testing.assert_array_equal(whole.lower[:3333], part.lower)
    np.testing.assert_array_equal(whole.upper[:3333], part.upper)
    assert (np.diff(whole.lower) >= 0).all()
    assert (np.diff(whole.upper) <= 0).all()


@given(
    st.lists(st.floats(-3, 7, allow_subnormal=False), min_size=1, max_size=40),
    st.sampled_from(SEQUENCE_METHODS),
    st.floats(1e-6, 0.999),
)
@settings(max_examples=150, deadline=None)
def test_any_values_give_numbers_in_range_and_mirror(values: list[float], method: Any, delta: float) -> None:
    found = confidence_sequence(values, delta, -3.0, 7.0, method)
    assert np.isfinite(found).all()
    assert (found.lower >= -3 - 1e-12).all()
    assert (found.upper <= 7 + 1e-12).all()
    mirrored = confidence_sequence([4 - v for v in values], delta, -3.0, 7.0, method)
    np.testing.assert_allclose(mirrored.lower, 4 - found.upper, atol=1e-6)


@pytest.mark.parametrize("method", SEQUENCE_METHODS)
def test_the_ends_of_the_range_and_one_row(method: Any) -> None:
    for value in (0.0, 1.0):
        found = confidence_sequence(np.full(3000, value), DELTA, method=method)
        assert found.lower[-1] <= value <= found.upper[-1]
        assert found.upper[-1] - found.lower[-1] < 0.05
    one = confidence_sequence([0.3], DELTA, method=method)
    assert one.lower.shape == (1,)
    assert one.lower[0] <= 0.3 <= one.upper[0]
    assert one.last == (one.lower[0], one.upper[0])


def test_clipping_leans_to_the_safe_side_and_its_cost_is_the_gap() -> None:
    """As n grows the ends go to E min(w, α) r and 1 - E min(w, α)(1 - r), which are E (w - α)₊ apart."""
    generator = np.random.default_rng(4)
    n, alpha = 200_000, 2.0
    q, pi, means = np.array([0.1, 0.9]), np.array([0.5, 0.5]), np.array([0.9, 0.4])
    action = (generator.random(n) > q[0]).astype(int)
    r, w = (generator.random(n) < means[action]) * 1.0, (pi / q)[action]
    found = weighted_sequence(w, r, DELTA, clip=alpha)
    clipped = np.minimum(pi / q, alpha)
    ends = (q * clipped) @ means, 1 - (q * clipped) @ (1 - means)
    assert found.lower[-1] == pytest.approx(ends[0], abs=0.01)
    assert found.upper[-1] == pytest.approx(ends[1], abs=0.01)
    free = weighted_sequence(w, r, DELTA)
    assert free.lower[-1] <= pi @ means <= free.upper[-1]
    assert free.upper[-1] - free.lower[-1] < 0.05 < found.upper[-1] - found.lower[-1]


def test_support_that_is_missing_widens_and_does_not_mislead() -> None:
    """π plays an action that the log never has: the value may be anything there, and the ends say so."""
    generator = np.random.default_rng(5)
    action = generator.integers(2, size=50_000)
    r = (generator.random(50_000) < np.array([0.2, 0.6])[action]) * 1.0
    found = weighted_sequence(np.array([0.4, 1.0])[action], r, DELTA)  # π = (.2, .5, .3), the third never logged
    assert found.lower[-1] == pytest.approx(0.2 * 0.2 + 0.5 * 0.6, abs=0.02)
    assert found.upper[-1] == pytest.approx(0.2 * 0.2 + 0.5 * 0.6 + 0.3, abs=0.02)


def test_candidates_share_the_level() -> None:
    w, r = np.random.default_rng(6).exponential(1, 500), np.random.default_rng(7).random(500)
    several = weighted_sequence(w, r, DELTA, candidates=4)
    alone = weighted_sequence(w, r, DELTA / 4)
    np.testing.assert_array_equal(several.lower, alone.lower)


def test_weights_too_large_for_a_number() -> None:
    found = weighted_sequence([1.0, math.inf, 0.5], [1.0, 1.0, 0.0])
    assert np.isfinite(found).all()
    assert weighted_sequence([1.0, math.inf], [1.0, 1.0], clip=2.0).lower[-1] <= 1


WRONG: list[tuple[Any, str]] = [
    (lambda: confidence_sequence([], 0.1), "at least one value"),
    (lambda: confidence_sequence([0.1, math.nan], 0.1), "row 1: found nan"),
    (lambda: confidence_sequence([0.1, 1.2], 0.1), r"row 1: found 1.2, expected a number in \[0, 1\]"),
    (lambda: confidence_sequence([[0.1]], 0.1), "shape"),
    (lambda: confidence_sequence(["a"], 0.1), "expected numbers"),
    (lambda: confidence_sequence([0.1], 0.0), "delta"),
    (lambda: confidence_sequence([0.1], 1.0), "delta"),
    (lambda: confidence_sequence([0.1], math.nan), "delta"),
    (lambda: confidence_sequence([0.1], 0.1, 1.0, 1.0), "lower < upper"),
    (lambda: confidence_sequence([0.1], 0.1, 0.0, math.inf), "upper"),
    (lambda: confidence_sequence([0.1], 0.1, method="magic"), "betting, plugin, realized"),
    (lambda: confidence_sequence([0.1], 0.1, method="plugin", common=False), "betting, realized"),
    (lambda: weighted_sequence([-1.0], [0.1]), "weight ≥ 0"),
    (lambda: weighted_sequence([math.nan], [0.1]), "row 0: found nan"),
    (lambda: weighted_sequence([1.0], [0.1, 0.2]), "length"),
    (lambda: weighted_sequence([1.0], [0.1], clip=0.0), "clip"),
    (lambda: weighted_sequence([1.0], [0.1], clip=math.nan), "clip"),
    (lambda: weighted_sequence([1.0], [0.1], candidates=0), "candidates"),
    (lambda: weighted_sequence([1.0], [0.1], reward_range=(1, 0)), "reward_range"),
    (lambda: weighted_sequence(["x"], [0.1]), "expected numbers"),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_wrong_input_is_refused(call: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        call()


def test_rounding_at_the_ends_is_forgiven() -> None:
    assert np.isfinite(confidence_sequence([1 + 1e-12, -1e-12], 0.1)).all()
