from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from o2pl import InvalidInput
from o2pl.evaluation.intervals import (
    bounded_column_for_interval,
    moments_for_interval,
    normal_interval,
    normal_interval_from_moments,
    one_more_row_for_interval,
)


def test_moments_with_a_large_mean() -> None:
    x = 1e9 + np.random.default_rng(0).random(1000)
    n, mean, variance = moments_for_interval(x)
    assert n == 1000
    assert mean == pytest.approx(x.mean(), rel=1e-15)
    assert variance == pytest.approx(x.var(ddof=1), rel=1e-9)


def test_normal_by_its_formula() -> None:
    x = np.random.default_rng(1).random(400)
    s = x.std(ddof=1)
    np.testing.assert_allclose(normal_interval(x, 0.1), norm.interval(0.9, x.mean(), s / 20))
    assert normal_interval_from_moments(moments_for_interval(x), 0.1) == normal_interval(x, 0.1)


def test_one_more_row_has_the_weight_of_a_row_of_the_policy_and_the_largest_surprise() -> None:
    weights, surprises = np.array([0.0, 0.0, 4.0, 1.0]), np.array([0.1, -0.9, 0.2, 0.0])
    assert one_more_row_for_interval(weights, surprises) == pytest.approx((16 + 1) / 5 * 0.9 / 4)
    assert one_more_row_for_interval(-weights, surprises) == one_more_row_for_interval(
        weights, surprises
    )  # differences of weights
    assert one_more_row_for_interval(np.zeros(4), surprises) == 0
    x = np.random.default_rng(1).random(400)
    error = math.hypot(x.std(ddof=1) / 20, 0.03)
    np.testing.assert_allclose(normal_interval(x, 0.1, 0.03), norm.interval(0.9, x.mean(), error))
    assert normal_interval([0.4, 0.4], 0.1, 0.03) == pytest.approx(norm.interval(0.9, 0.4, 0.03))


def test_what_cannot_be_known_is_infinite() -> None:
    everything = (-math.inf, math.inf)
    assert normal_interval([0.4], 0.1) == everything
    assert normal_interval([0.4, 0.4], 0.1) == everything


WRONG: list[tuple[Any, str]] = [
    (lambda: normal_interval([], 0.1), "at least one"),
    (lambda: normal_interval([0.1, math.inf], 0.1), "row 1: found inf"),
    (lambda: normal_interval([0.1, 0.2], 1.5), "delta"),
    (lambda: bounded_column_for_interval("values", [2.0], 0.0, 1.0), r"expected a number in \[0, 1\]"),
    (lambda: bounded_column_for_interval("values", [0.5], 1.0, 0.0), "lower < upper"),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_wrong_input_is_refused(call: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        call()
