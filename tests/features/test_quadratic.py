from __future__ import annotations

import numpy as np

from o2pl.features import Quadratic


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
