"""Bounds by hand and by force, and the Γ at which a verdict flips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from o2pl.evaluation.intervals import normal_interval
from o2pl.evaluation.sensitivity import Linear, sensitivity


def some_rows(n: int = 60, density: bool = False, seed: int = 0) -> Linear:
    g = np.random.default_rng(seed)
    return Linear(g.normal(0.3, 0.1, n), 0.1 * g.normal(size=n), g.uniform(0.1, 0.9, n), density)


@pytest.mark.parametrize("density", [False, True])
def test_the_ends_are_those_of_a_linear_programme(density: bool) -> None:
    rows = some_rows(density=density)
    found = sensitivity(rows, 0.05, -math.inf, math.inf)
    for one in found.ranges:
        q, gamma = rows.propensities, one.gamma
        odds = q / (1 - q)
        bounds = [(a / (1 + a), b / (1 + b)) for a, b in zip(odds / gamma, odds * gamma, strict=True)]
        if density:
            bounds = [(one / gamma, one * gamma) for one in q]
        inverse = [(1 / high, 1 / low) for low, high in bounds]
        for sign, value in ((1, one.lowest), (-1, one.highest)):
            best = linprog(sign * rows.slope / len(q), bounds=inverse)
            assert value == pytest.approx(sign * best.fun + rows.base.mean(), abs=1e-9)


def test_without_error_it_is_the_plain_interval_and_ranges_grow() -> None:
    rows = some_rows()
    first, *others = sensitivity(rows, 0.1, -math.inf, math.inf).ranges
    values = rows.base + rows.slope / rows.propensities
    assert (first.low, first.high) == pytest.approx(normal_interval(values, 0.1))
    assert first.lowest == first.highest == pytest.approx(values.mean())
    widths = [one.high - one.low for one in (first, *others)]
    assert widths == sorted(widths)
    assert [one.gamma for one in others] == [1.1, 1.25, 1.5, 2.0]


def test_one_more_row_may_weigh_more_by_the_factor() -> None:
    rows = some_rows()
    for one in sensitivity(rows, 0.1, -math.inf, math.inf, one_more=0.3).ranges:
        below, above = rows.ends(one.gamma)
        assert one.low == normal_interval(below, 0.1, 0.3 * one.gamma)[0]
        assert one.high == normal_interval(above, 0.1, 0.3 * one.gamma)[1]


def test_the_verdict_flips_where_the_interval_meets_0() -> None:
    rows = some_rows(400)
    found = sensitivity(rows, 0.05, -math.inf, math.inf)
    assert 1 < found.flips < math.inf
    below = sensitivity(rows, 0.05, -math.inf, math.inf, gammas=(found.flips * 0.999, found.flips * 1.001)).ranges
    assert below[1].low > 0 > below[2].low
    worse = rows._replace(base=-rows.base, slope=-rows.slope)
    assert sensitivity(worse, 0.05, -math.inf, math.inf).flips == pytest.approx(found.flips)
    assert sensitivity(rows._replace(base=rows.base - 0.3), 0.05, -math.inf, math.inf).flips == 1
    certain = rows._replace(slope=np.zeros(400))
    assert sensitivity(certain, 0.05, -math.inf, math.inf).flips == math.inf


def test_ends_keep_to_what_there_can_be_and_are_widened_by_what_is_missing() -> None:
    rows = some_rows()
    plain, wide = (sensitivity(rows, 0.05, 0.0, 0.4, missing).ranges[0] for missing in (0.0, 0.02))
    assert wide.low == pytest.approx(max(plain.low - 0.02, 0))
    assert sensitivity(rows, 0.05, 0.0, 0.4).ranges[-1].high == 0.4
    assert sensitivity(rows, 0.05, 0.25, 0.4).at(2.0)[1:] == (0.25, 0.4, 0.25, 0.4)
