from __future__ import annotations

import numpy as np

from o2pl.objectives.improvement import improvement_values


def test_the_improvement_is_bounded_from_below_whatever_is_clipped() -> None:
    """Against a loop, and in the mean over the logger's actions: never above V(π) - V(π'), with support or without."""
    g = np.random.default_rng(0)
    for _ in range(50):
        mu, pi, other, means = g.dirichlet(np.ones(4)), g.dirichlet(np.ones(4)), g.dirichlet(np.ones(4)), g.random(4)
        mu = np.r_[mu[:3] / mu[:3].sum(), 0.0]  # one action is never logged
        low, high, clip = -1.0, 2.0, g.uniform(0.5, 5)
        rewards = low + (high - low) * means[:3]
        weights, against = pi[:3] / mu[:3], other[:3] / mu[:3]
        values = improvement_values(weights, against, rewards, low, high, clip)
        slow = [
            min(w, clip) * (r - low) / 3 + min(v, clip) * (high - r) / 3 - 1
            for w, v, r in zip(weights, against, rewards, strict=True)
        ]
        np.testing.assert_allclose(values, slow)
        assert mu[:3] @ values <= (pi - other) @ means + 1e-12
    assert improvement_values(np.array([np.inf]), np.ones(1), np.zeros(1), 0, 1) == 0  # a reward of 0 is 0
