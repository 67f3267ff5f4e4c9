"""Rows with a column of each kind."""

from __future__ import annotations

import numpy as np


def rows(n: int = 200, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.column_stack(
        [1e4 + 3 * generator.normal(size=n), generator.normal(size=n), generator.integers(2, size=n), np.full(n, 7.3)]
    ).astype(np.float32)
