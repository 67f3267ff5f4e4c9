"""Bounds: equal to their definitions, the same from parts, and they hold as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import skew, t

from o2pl.evaluation.bounds import ENOUGH, lower_bound, sums_for_bounds
from o2pl.theory.betting import betting_lower
from o2pl.theory.inequality import refutes


def test_the_normal_bound_from_its_definition() -> None:
    terms = np.random.default_rng(0).exponential(size=400)
    for values in (terms, -terms):
        z, n = t.ppf(0.975, 399), 400
        wide = (1 + 2 * z * z) * skew(values) * values.std(ddof=1) / (6 * n)
        expected = values.mean() - z * values.std(ddof=1) / math.sqrt(n) + min(0.0, wide)
        found = lower_bound(sums_for_bounds(values, 10.0), 0.025, 100.0)
        assert found.kind == "normal, with skew"
        assert found.end == pytest.approx(expected, abs=1e-9)


def test_the_betting_bound_from_its_definition_and_terms_below_the_floor_are_paid_for() -> None:
    terms = np.random.default_rng(1).normal(0.2, 0.5, size=300)
    found = lower_bound(sums_for_bounds(terms, 1.0), 0.05, 0.0)
    raised = np.maximum(terms + 1.0, 0.0)
    expected = betting_lower(raised, 0.05, False)[-1] - 1.0 - (raised - terms - 1.0).mean()
    assert found == (pytest.approx(expected, abs=1e-9), "betting")
    assert lower_bound(sums_for_bounds(terms, 1.0), 0.05, 1e9, at_any_time=True).kind == "betting, at any time"


def test_parts_add_up() -> None:
    terms = np.random.default_rng(2).gamma(0.3, size=500)
    whole = sums_for_bounds(terms, 0.5, 0.1)
    parts = sums_for_bounds(terms[:123], 0.5, 0.1).added(sums_for_bounds(terms[123:], 0.5, 0.1))
    for one, two in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9)
    u = terms - terms.mean()
    assert whole.surprises == pytest.approx((u @ u) ** 2 / (u**4).sum())
    with pytest.raises(ValueError, match="around different numbers"):
        whole.added(sums_for_bounds(terms, 0.4, 0.1))


def test_few_surprises_are_not_judged_by_a_normal_bound() -> None:
    rare = np.r_[np.ones(3), np.zeros(500)]
    assert sums_for_bounds(rare, 1.0).surprises < ENOUGH
    assert lower_bound(sums_for_bounds(rare, 1.0), 0.05, sums_for_bounds(rare, 1.0).surprises).kind == "betting"
    assert sums_for_bounds(np.full(50, 0.3), 1.0).surprises == 0


@pytest.mark.parametrize("tail", ["left", "right"])
def test_it_holds_for_skewed_terms(tail: str) -> None:
    """A lower bound at 2.5 %, for terms with about 20 effective surprises; binomial test at 1e-3."""
    wrong, logs, n = 0, 1500, 300
    g = np.random.default_rng(3)
    for _ in range(logs):
        terms = g.binomial(1, 0.08, size=n) * (1.0 if tail == "right" else -1.0)
        truth = 0.08 if tail == "right" else -0.08
        sums = sums_for_bounds(terms, 1.0)
        wrong += lower_bound(sums, 0.025, sums.surprises).end > truth
    assert not refutes(wrong, logs, 0.025, 1e-3)
