from __future__ import annotations

import numpy as np

from o2pl.features import Fourier


def test_fourier_features_tend_to_the_gaussian_kernel() -> None:
    x = np.random.default_rng(3).normal(size=(6, 2)).astype(np.float32)
    each = Fourier(n_features=40_000, bandwidth=1.5)
    out = each.transform(each.init(2), x)
    distances = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(out @ out.T / 40_000, np.exp(-distances / (2 * 1.5**2)), atol=0.03)
