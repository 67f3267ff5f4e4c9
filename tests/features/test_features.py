from __future__ import annotations

import numpy as np
import pytest

from o2pl.features import Chain, Fourier, Intercept, Quadratic, Standardise


def rows(n: int = 200, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.column_stack(
        [1e4 + 3 * generator.normal(size=n), generator.normal(size=n), generator.integers(2, size=n), np.full(n, 7.3)]
    ).astype(np.float32)


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


def test_quadratic_holds_all_products_standardised() -> None:
    x = np.random.default_rng(1).normal(size=(300, 3)).astype(np.float32)
    out = Quadratic().transform(Quadratic().observe(Quadratic().init(3), x), x)
    np.testing.assert_array_equal(out[:, :3], x)
    products = np.column_stack([x[:, i] * x[:, j] for i in range(3) for j in range(i, 3)])
    slow = (products - products.mean(axis=0)) / products.std(axis=0) * np.sqrt(3 / 6)
    np.testing.assert_allclose(out[:, 3:], slow, atol=2e-5)


def test_many_inputs_are_projected_first() -> None:
    each = Quadratic(most=25, projected=15)
    assert each.width(25) == 25 + 25 * 26 // 2
    assert each.width(26) == 26 + 15 * 16 // 2
    x = np.random.default_rng(2).normal(size=(50, 30)).astype(np.float32)
    state = each.observe(each.init(30), x)
    factors = x @ state["directions"].T
    first = factors[:, 0] ** 2
    out = each.transform(state, x)
    np.testing.assert_allclose(out[:, 30], (first - first.mean()) / first.std() * np.sqrt(30 / 120), atol=1e-4)


def test_fourier_features_tend_to_the_gaussian_kernel() -> None:
    x = np.random.default_rng(3).normal(size=(6, 2)).astype(np.float32)
    each = Fourier(n_features=40_000, bandwidth=1.5)
    out = each.transform(each.init(2), x)
    distances = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(out @ out.T / 40_000, np.exp(-distances / (2 * 1.5**2)), atol=0.03)


def test_a_chain_is_its_maps_one_after_another() -> None:
    x = rows()
    chain = Chain((Standardise(), Intercept()))
    state = chain.observe(chain.init(4), x)
    alone = Standardise().observe(Standardise().init(4), x)
    np.testing.assert_array_equal(chain.transform(state, x)[:, 1:], Standardise().transform(alone, x))
    np.testing.assert_array_equal(chain.transform(state, x)[:, 0], 1)
