from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.compiled.exponential import exp, exp_any, log_any, split_exponent


@compiled
def _in_a_kernel(x: Any, out: Any) -> None:
    for i in range(len(x)):
        out[i] = exp(x[i])


def test_exp_of_what_is_not_positive() -> None:
    x = -np.linspace(0, 86, 5001)
    for kind, tolerance in ((np.float32, 3e-7), (np.float64, 1e-15)):
        out = np.empty(len(x), kind)
        _in_a_kernel(x.astype(kind), out)
        np.testing.assert_allclose(out, np.exp(x.astype(kind).astype(np.float64)), rtol=tolerance)
    assert exp(-1.5) == math.exp(-1.5)


def test_exp_of_any_number() -> None:
    x = np.random.default_rng(0).uniform(-700, 700, 2000)
    found = np.array([exp_any(each) for each in x])
    assert (np.abs(found / np.exp(x) - 1) <= 1e-15 + 3e-16 * np.abs(x)).all()
    assert [exp_any(each) for each in (-math.inf, -1e4, 0.0, 1e4, math.inf)] == [0.0, 0.0, 1.0, math.inf, math.inf]
    assert math.isnan(exp_any(math.nan))


def test_logarithm_and_exponent_of_positive_numbers() -> None:
    powers = np.random.default_rng(1).uniform(-700, 700, 2000)
    for x in (*np.exp(powers), 1.0, np.nextafter(1.0, 0), np.nextafter(2.0, 0), math.sqrt(2), 2.0**-1022):
        assert abs(log_any(x) - math.log(x)) <= 4e-16 * max(1.0, abs(math.log(x)))
        exponent, rest = split_exponent(x)
        assert 1 <= rest < 2
        assert math.ldexp(rest, int(exponent) - 1023) == x
    assert log_any(1.0) == 0
