"""A control variate m(x, a): a rough model of the losses that takes out variance and is never used to act.

min(w, α)(y - m(x, a)) + Σ_a' π(a'|x) m(x, a') has, before clipping, the same mean for every m that does not depend on
the row's own loss; that is why the played action's prediction leaves its row out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from o2pl.protocols import Floats, Ints


class RidgeControl(NamedTuple):
    """Predicted losses, cut to [-1, 0]."""

    all_actions: Floats  # m(x_s, a), [n, K]
    played: Floats  # m(x_s, a_s) from a fit without row s, [n]


def ridge_control(
    features: Floats, actions: Ints, losses: Floats, n_actions: int, baseline: float, ridge: float
) -> RidgeControl:
    """One ridge regression per action on its own rows, of y - b on the features; an action never played predicts b.

    Leaving a row out costs nothing: with leverage h_s = φ_sᵀ G⁻¹ φ_s its prediction is (ŷ_s - h_s y_s) / (1 - h_s).
    """
    n = len(actions)
    predicted = np.full((n, n_actions), baseline)
    played = np.full(n, baseline)
    X = features.astype(np.float64)
    for action in range(n_actions):
        rows = np.flatnonzero(actions == action)
        if not len(rows):
            continue
        own, y = X[rows], losses[rows] - baseline
        if len(rows) < X.shape[1]:  # G⁻¹ Xᵀ = Xᵀ (X Xᵀ + ridge)⁻¹: the smaller of the two systems
            inverse_design = np.linalg.solve(own @ own.T + ridge * np.eye(len(rows)), own).T
        else:
            inverse_design = np.linalg.solve(own.T @ own + ridge * np.eye(X.shape[1]), own.T)  # G⁻¹ Xᵀ, [d, m]
        coefficients = inverse_design @ y
        leverage = np.einsum("md,dm->m", own, inverse_design)
        fitted = own @ coefficients
        predicted[:, action] += X @ coefficients
        played[rows] += (fitted - leverage * y) / (1 - leverage)
    return RidgeControl(np.clip(predicted, -1, 0), np.clip(played, -1, 0))
