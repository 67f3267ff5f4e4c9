"""What every policy must do is in test_contracts; here, what is this one's own."""

from __future__ import annotations

import numpy as np

from o2pl.data.contexts import ActionSets, SparseRows
from o2pl.policies import ActionWise
from o2pl.policies.likelihood import probabilities


def test_each_set_is_a_softmax_of_its_own() -> None:
    generator = np.random.default_rng(0)
    matrices, theta = [generator.normal(size=(k, 3)) for k in (1, 4, 2)], generator.normal(size=3)
    sets = ActionSets.of(matrices)
    slow = []
    for rows in matrices:
        raised = np.exp(rows @ theta)
        slow.append(raised / raised.sum())
    np.testing.assert_allclose(probabilities(ActionWise(), theta, sets), np.concatenate(slow), rtol=1e-5)


def test_sparse_sets_are_dense_ones() -> None:
    generator = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(4, size=12))])
    indices = generator.integers(5, size=offsets[-1]).astype(np.int32)
    rows = SparseRows(indices, generator.normal(size=offsets[-1]).astype(np.float32), offsets, 5)
    ends, theta, cotangent = np.array([0, 3, 4, 12]), generator.normal(size=5), generator.normal(size=12)
    (scores, pullback), (expected, slow) = (
        ActionWise().forward(theta, ActionSets(each, ends), np.zeros(3, int)) for each in (rows, rows.dense())
    )
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
    np.testing.assert_allclose(pullback(cotangent), slow(cotangent), rtol=1e-6)
