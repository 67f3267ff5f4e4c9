"""Features row by row beside NumPy, and each row alone beside the batch."""

from __future__ import annotations

import numpy as np

from o2pl.features.rowwise import products_rowwise, standardised_rowwise

GENERATOR = np.random.default_rng(3)
ROWS = 3 * GENERATOR.normal(size=(17, 4)).astype(np.float32)


def test_standardised_rows_are_shifted_scaled_and_clipped() -> None:
    shift, scale = ROWS.mean(axis=0), 1 / ROWS.std(axis=0)
    made = standardised_rowwise(ROWS, shift, scale, 1.5)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, np.clip((ROWS - shift) * scale, np.float32(-1.5), np.float32(1.5)))
    assert (abs(made) == 1.5).any()


def test_products_follow_the_factors_in_order() -> None:
    upper = np.triu_indices(4)
    products = (ROWS[:, :, None] * ROWS[:, None, :])[:, *upper].astype(np.float64)
    shift, scale = np.linspace(-1, 1, 10).astype(np.float32), np.linspace(0.5, 2, 10).astype(np.float32)
    made = products_rowwise(ROWS, shift, scale)
    np.testing.assert_array_equal(made[:, :4], ROWS)
    np.testing.assert_allclose(made[:, 4:], (products - shift) * scale, rtol=1e-5, atol=1e-5)


def test_a_row_is_the_same_alone_and_in_a_batch() -> None:
    shift, scale = np.full(10, 0.3, np.float32), np.full(10, 0.7, np.float32)
    made = products_rowwise(ROWS, shift, scale)
    for alone, row in zip(made, ROWS, strict=True):
        assert products_rowwise(row[None], shift, scale)[0].tobytes() == alone.tobytes()
