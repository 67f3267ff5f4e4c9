from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from o2pl.theory.betting import BETS, LOG_SHARES, bet_sums, betting_lower, betting_lower_from_sums

DELTA = 0.08


def test_the_stakes_are_one() -> None:
    assert np.exp(LOG_SHARES).sum() == pytest.approx(1, abs=1e-12)
    assert (BETS > 0).all()


def test_looking_less_often_costs_a_thousandth() -> None:
    """After many rows the capital is looked at every 512th of them: bounds wait, never beyond the exact ones."""
    y = np.random.default_rng(3).exponential(0.5, 20_000)
    often = np.maximum.accumulate(betting_lower(y, DELTA, common=False))
    seldom = betting_lower(y, DELTA)
    assert (seldom <= often + 1e-9).all()
    assert seldom[-1] >= often[-1] - 0.002 * (0.5 - often[-1])
    np.testing.assert_allclose(seldom[:1023], often[:1023], atol=1e-9)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 5000])
def test_sums_of_parts_give_the_bound_of_the_whole(rows: int) -> None:
    y = np.random.default_rng(rows).exponential(0.6, rows)
    parts = sum((bet_sums(part) for part in np.array_split(y, 7)), np.zeros(len(BETS)))
    expected = betting_lower(y, DELTA, common=False)[-1]
    assert betting_lower_from_sums(parts, rows, DELTA) == pytest.approx(expected, abs=1e-9)
    assert rows < 100 or expected > 0.5


def test_no_rows_and_huge_values_say_nothing_false() -> None:
    assert betting_lower_from_sums(np.zeros(len(BETS)), 0, DELTA) == 0
    huge = np.full(40, 1e300)
    assert np.isfinite(bet_sums(huge)).all()
    assert betting_lower_from_sums(bet_sums(huge), 40, DELTA) == pytest.approx(betting_lower(huge, DELTA, False)[-1])


def test_bounds_have_the_same_bits_at_every_level_of_instructions() -> None:
    code = """
import numpy as np
from o2pl.evaluation.bernstein import plugin_bernstein_lower, realized_bernstein_lower
from o2pl.evaluation.intervals import moments_for_interval, sums_for_interval
from o2pl.theory.betting import bet_sums, betting_lower

g = np.random.default_rng(5)
w, u = g.exponential(1, 3001), g.random(3001)
numbers = [bet_sums(w * u), betting_lower(w * u, 0.05), betting_lower(w[:100] * u[:100], 0.05, False)]
numbers += [plugin_bernstein_lower(w * u, 0.05), realized_bernstein_lower(w * u, 0.05)]
numbers += [moments_for_interval(w)[1:], sums_for_interval(w, u, w)]
print(np.concatenate(numbers).tobytes().hex())
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "O2PL_LEVEL": level}, capture_output=True, check=True
        ).stdout
        for level in ("plain", "avx2", "avx512")
    }
    assert len(found) == 1
