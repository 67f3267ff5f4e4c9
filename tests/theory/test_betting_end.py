"""The end of a sequence, found without the bounds in between, against the sequence of all bounds."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl.theory.betting import betting_lower
from o2pl.theory.betting_end import BettingEnds

DELTA = 1e-3


@pytest.mark.parametrize("n", [1, 2, 15, 17, 1023, 1024, 1025, 2049, 8191, 8192, 8230, 40_003])
def test_the_end_is_that_of_the_sequence(n: int) -> None:
    g = np.random.default_rng(n)
    shares, none = g.random(n), np.zeros(n)
    heavy, fading = g.exponential(1, n) * (g.random(n) < 0.3), g.exponential(1, n) * np.linspace(3, 0, n)
    ends = BettingEnds(shares)  # one memory for all
    cases = [
        (heavy, none, 1.0, 0.1),
        (none, heavy, 1.0, 0.1),
        (heavy, fading, 0.5, 0.5),
        (fading, heavy, 0.5, 0.5),  # its bound is largest long before the last row
        (none, none, 1.0, 0.1),
        (np.full(n, np.inf), none, 1.0, 2.0),
        (np.full(n, 1e300), none, 0.5, 2.0),
    ]
    passed = 0
    for one, two, scale, level in cases:
        y = scale * (np.minimum(one, 1e15) * shares + np.minimum(two, 1e15) * (1 - shares))
        bounds = betting_lower(y, DELTA)
        found = ends.end(one, two, scale, DELTA, level)
        assert found.bound == pytest.approx(bounds[-1], rel=1e-9, abs=1e-9)
        assert found.passed == (int(np.argmax(bounds > level)) if bounds[-1] > level else None)
        assert ends.end(one, two, scale, DELTA).passed is None
        passed += found.passed is not None
    assert n < 1000 or passed >= 4


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="found 3 and 4 weights, expected 4"):
        BettingEnds(np.ones(4)).end(np.ones(3), np.ones(4), 1.0, DELTA)
