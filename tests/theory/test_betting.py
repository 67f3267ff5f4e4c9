from __future__ import annotations

import numpy as np
import pytest

from o2pl.theory.betting import BETS, LOG_SHARES, betting_lower

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
    assert seldom[-1] >= often[-1] - 0.002 * (y.mean() - often[-1])
    np.testing.assert_allclose(seldom[:1023], often[:1023], atol=1e-9)
