from __future__ import annotations

import numpy as np
import pytest
from tests.features.cases import rows

from o2pl.features import Standardise


def test_running_moments_are_those_of_all_rows_however_they_were_batched() -> None:
    x = rows()
    once = Standardise().observe(Standardise().init(4), x)
    parts = Standardise().init(4)
    for start, stop in ((0, 1), (1, 2), (2, 77), (77, 200)):
        parts = Standardise().observe(parts, x[start:stop])
    for name in once:
        np.testing.assert_array_equal(once[name], parts[name])
    np.testing.assert_allclose(once["mean"], x.astype(np.float64).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(once["squares"] / 200, x.astype(np.float64).var(axis=0), rtol=1e-6, atol=1e-9)


def test_what_standardising_does_to_each_kind_of_column() -> None:
    x = rows()
    out = Standardise().transform(Standardise().observe(Standardise().init(4), x), x)
    assert abs(out[:, 0].mean()) < 1e-3
    assert out[:, :2].std(axis=0) == pytest.approx(1, abs=1e-3)
    np.testing.assert_array_equal(out[:, 2], x[:, 2])  # one-hots stay
    np.testing.assert_array_equal(out[:, 3], 0)  # a constant says nothing
    forced = Standardise(keep_binary=False)
    out = forced.transform(forced.observe(forced.init(4), x), x)
    assert abs(out[:, 2].mean()) < 1e-5


def test_outliers_are_cut_and_an_empty_state_hands_through() -> None:
    x = rows()
    seen = Standardise(clip=2).observe(Standardise().init(4), x)
    assert np.abs(Standardise(clip=2).transform(seen, 1e6 * x)[:, :2]).max() == 2
    small = np.array([[0.5, -1, 0.25, 2]], np.float32)
    np.testing.assert_array_equal(Standardise().transform(Standardise().init(4), small), small)
