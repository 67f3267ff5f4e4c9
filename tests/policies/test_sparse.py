"""What every policy must do is in test_contracts; here, what is sparse rows' own."""

from __future__ import annotations

import numpy as np

from o2pl.data.contexts import SparseRows
from o2pl.policies import SparseSoftmax
from o2pl.policies.sparse import sparse_scores, sparse_sums

# What stands twice counts twice; the second row is empty.
ROWS = SparseRows(
    np.array([1, 3, 3, 0, 4], np.int32), np.array([0.5, 2.0, -1.0, 1.5, 3.0], np.float32), np.array([0, 3, 3, 5]), 5
)


def test_scores_and_sums_are_products_with_the_dense_matrix() -> None:
    generator, X = np.random.default_rng(0), ROWS.dense().astype(np.float64)
    W, cotangent = generator.normal(size=(5, 2)), generator.normal(size=(3, 2))
    np.testing.assert_allclose(sparse_scores(ROWS, W), X @ W)
    np.testing.assert_allclose(sparse_sums(ROWS, cotangent, 5), X.T @ cotangent)
    np.testing.assert_allclose(SparseSoftmax(2).scores(W.reshape(-1), ROWS), X @ W)


def test_features_that_have_no_weights_yet_count_nothing() -> None:
    generator, X = np.random.default_rng(1), ROWS.dense().astype(np.float64)
    W, cotangent = generator.normal(size=(2, 3)), generator.normal(size=(3, 3))
    scores, pullback = SparseSoftmax(3).forward(W.reshape(-1), ROWS, np.zeros(3, int))
    np.testing.assert_allclose(scores, X[:, :2] @ W)
    np.testing.assert_allclose(pullback(cotangent), (X[:, :2].T @ cotangent).reshape(-1))
