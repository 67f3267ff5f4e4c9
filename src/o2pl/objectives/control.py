"""A control variate m(x, a): a rough model of the losses that takes out variance and is never used to act.

min(w, α)(y - m(x, a)) + Σ_a' π(a'|x) m(x, a') has, before clipping, the same mean for every m that does not depend on
the row's own loss; that is why the played action's prediction leaves its row out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from o2pl.compiled import compiled
from o2pl.protocols import Floats, Ints


class RidgeControl(NamedTuple):
    """Predicted losses, cut to [-1, 0]."""

    all_actions: Floats  # m(x_s, a), [n, K], single precision
    played: Floats  # m(x_s, a_s) from a fit without row s, [n]


def ridge_control(
    features: Floats, actions: Ints, losses: Floats, n_actions: int, baseline: float, ridge: float
) -> RidgeControl:
    """One ridge regression per action on its own rows, of y - b on the features; an action never played predicts b."""
    X = np.ascontiguousarray(features, np.float32)
    coefficients = np.zeros((n_actions, X.shape[1]), np.float32)
    played = np.zeros(len(actions), np.float32)
    order = np.argsort(actions, kind="stable")
    ends = np.cumsum(np.bincount(actions, minlength=n_actions))
    _fit_actions(X[order], losses[order] - baseline, ends, ridge, coefficients, played)
    back = np.empty_like(played)
    back[order] = played
    return RidgeControl(np.clip(X @ coefficients.T + baseline, -1, 0), np.clip(back + baseline, -1, 0))


def ridge_baseline(features: Floats, losses: Floats, baseline: float, ridge: float) -> Floats:
    """m(x): one ridge regression of y - b on the features of all rows, each predicted without itself. [n]"""
    X = np.ascontiguousarray(features, np.float32)
    coefficients, played = np.zeros((1, X.shape[1]), np.float32), np.zeros(len(X), np.float32)
    _fit_actions(X, losses - baseline, np.array([len(X)]), ridge, coefficients, played)
    return np.asarray(np.clip(played + baseline, -1, 0))


@compiled
def _fit_actions(X: Floats, y: Floats, ends: Ints, ridge: float, coefficients: Floats, played: Floats) -> None:
    """Rows X [n, d] sorted by action, action k's ending at ends[k]; coefficients [K, d], leave-one-out fits [n].

    With G = XᵀX + ridge and leverage h_s = x_s G⁻¹ x_sᵀ a row is left out by (ŷ_s - h_s y_s) / (1 - h_s). With fewer
    rows than features the smaller system M = XXᵀ + ridge tells the same: c = XᵀM⁻¹y, and 1 - h_s = ridge · M⁻¹_ss.
    """
    d = X.shape[1]
    start = 0
    for k in range(len(ends)):
        own, target = X[start : ends[k]], y[start : ends[k]]
        m = len(own)
        if m == 0:
            continue
        products = np.dot(own, own.T) if m < d else np.dot(own.T, own)
        root = _inverse_root(products, ridge)
        if m < d:
            dual = np.dot(root.T, np.dot(root, target))  # M⁻¹ y
            coefficients[k] = np.dot(own.T, dual.astype(np.float32))
            for s in range(m):
                size = 0.0
                for j in range(s, m):
                    size += root[j, s] * root[j, s]
                played[start + s] = target[s] - dual[s] / size
        else:
            moments = np.dot(own.T, target.astype(np.float32)).astype(np.float64)
            coefficients[k] = np.dot(root.T, np.dot(root, moments))
            scaled = np.dot(own, np.ascontiguousarray(root.T).astype(np.float32))  # [m, d], |row|² = h
            for s in range(m):
                leverage, fit = 0.0, 0.0
                for j in range(d):
                    leverage += scaled[s, j] * scaled[s, j]
                    fit += own[s, j] * coefficients[k, j]
                played[start + s] = (fit - leverage * target[s]) / (1 - leverage)
        start = ends[k]


@compiled
def _inverse_root(products: Floats, ridge: float) -> Floats:
    """L⁻¹ of products + ridge = L Lᵀ, by rows of L⁻¹ so that the loops vectorise. [d, d]"""
    d = len(products)
    L = np.linalg.cholesky(products.astype(np.float64) + ridge * np.eye(d))
    root = np.zeros((d, d))
    for i in range(d):
        root[i, i] = 1.0
        for j in range(i):
            share = L[i, j]
            for c in range(j + 1):
                root[i, c] -= share * root[j, c]
        for c in range(i + 1):
            root[i, c] /= L[i, i]
    return root
