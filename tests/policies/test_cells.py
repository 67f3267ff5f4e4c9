from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, kstest

from o2pl import InvalidInput
from o2pl.policies import Cells

SPACINGS = pytest.mark.parametrize("log", [False, True])


def some(log: bool, rows: int = 1, seed: int = 0) -> tuple[Cells, Any]:
    """Cells, and probabilities of them in so many rows."""
    cells = Cells((5.0, 20.0), 6, log)
    return cells, np.random.default_rng(seed).dirichlet(np.ones(6), size=1).repeat(rows, axis=0)


@SPACINGS
def test_the_density_integrates_to_one_over_the_bounds_and_has_these_moments(log: bool) -> None:
    cells, pi = some(log)
    edges = cells.actions(np.arange(7) / 6)

    def mean_of(power: int) -> float:
        parts = pairwise(edges)
        return sum(quad(lambda a: a**power * cells.density(pi, np.array([a]))[0], *part)[0] for part in parts)

    assert mean_of(0) == pytest.approx(1, abs=1e-8)
    mean, deviation = cells.moments(pi)
    assert mean[0] == pytest.approx(mean_of(1), abs=1e-7)
    assert deviation[0] ** 2 == pytest.approx(mean_of(2) - mean_of(1) ** 2, abs=1e-6)
    np.testing.assert_array_equal(cells.density(pi.repeat(2, 0), np.array([4.999, 20.001])), 0)


@SPACINGS
def test_actions_come_as_their_density_says(log: bool) -> None:
    cells, pi = some(log, 20_000)
    actions, densities = cells.draw(pi, np.random.default_rng(1).random(len(pi)))
    np.testing.assert_allclose(densities, cells.density(pi, actions), rtol=1e-12)
    counts = np.bincount(cells.cell(actions), minlength=6)
    assert chisquare(counts, len(pi) * pi[0]).pvalue > 1e-4
    places = (cells.place(actions) * 6) % 1  # within a cell, anywhere alike
    assert kstest(places, "uniform").pvalue > 1e-4
    assert np.mean(1 / densities) == pytest.approx(15, rel=0.02)  # E[1/π] is the length of the bounds


@SPACINGS
def test_no_number_leads_to_the_bounds_or_beyond(log: bool) -> None:
    cells = Cells((5.0, 20.0), 3, log)
    pi = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.1, 0.2, 0.7]]).repeat(3, axis=0)
    actions, densities = cells.draw(pi, np.tile([0.0, 0.5, 1 - 2**-53], 4))
    assert (actions > 5).all()
    assert (actions < 20).all()
    np.testing.assert_allclose(densities, cells.density(pi, actions), rtol=1e-12)
    assert (densities > 0).all()


def test_places_and_actions_are_inverse() -> None:
    for log in (False, True):
        cells, places = Cells((0.5, 60.0), 8, log), np.linspace(0, 1, 9)
        np.testing.assert_allclose(cells.place(cells.actions(places)), places, atol=1e-12)
    assert Cells((1.0, 100.0), 2, True).actions(np.array([0.5]))[0] == pytest.approx(10)


def test_bounds_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInput, match="lowest action > 0"):
        Cells((0.0, 1.0), 8, True)
    with pytest.raises(InvalidInput, match="lowest < highest"):
        Cells((3.0, 3.0))
