"""A control variate m(x, a): a rough model of the losses that takes out variance and is never used to act.

min(w, α)(y - m(x, a)) + Σ_a' π(a'|x) m(x, a') has, before clipping, the same mean for every m that does not depend on
the row's own loss; that is why the played action's prediction leaves its row out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from o2pl.compiled import compiled
from o2pl.features.blocks import BLOCK, Recipe, as_they_are, fill, pick
from o2pl.protocols import Floats, Ints


class RidgeControl(NamedTuple):
    """Predicted losses, cut to [-1, 0]."""

    blocks: Floats  # m(x_s, a), [blocks, K, rows of a block], single precision; 0 beyond the last row
    played: Floats  # m(x_s, a_s) from a fit without row s, [n]

    @classmethod
    def of(cls, all_actions: Floats, played: Floats) -> RidgeControl:
        """From m(x_s, a), [n, K]."""
        n, n_actions = all_actions.shape
        blocks = _no_blocks(n, n_actions)
        rows = np.zeros((blocks.shape[0] * blocks.shape[2], n_actions), np.float32)
        rows[:n] = all_actions
        blocks[:] = rows.reshape(len(blocks), -1, n_actions).transpose(0, 2, 1)
        return cls(blocks, played)

    @property
    def all_actions(self) -> Floats:
        """m(x_s, a), [n, K]"""
        rows = self.blocks.transpose(0, 2, 1).reshape(-1, self.blocks.shape[1])
        return np.asarray(rows[: len(self.played)])


def ridge_control(
    features: Floats | Recipe, actions: Ints, losses: Floats, n_actions: int, baseline: float, ridge: float
) -> RidgeControl:
    """One ridge regression per action on its own rows, of y - b on the features; an action never played predicts b."""
    made = features if isinstance(features, Recipe) else as_they_are(features)
    n = len(actions)
    coefficients = np.zeros((n_actions, made.width), np.float32)
    played = np.zeros(n, np.float32)
    order = np.argsort(actions, kind="stable")
    ends = np.cumsum(np.bincount(actions, minlength=n_actions))
    _fit_actions(made, order, losses, ends, baseline, ridge, coefficients, played)
    blocks = _no_blocks(n, n_actions)
    _predict(made, coefficients, baseline, n, blocks)
    return RidgeControl(blocks, played)


def _no_blocks(n: int, n_actions: int) -> Floats:
    size = min(BLOCK, n)
    return np.zeros((-(-n // size), n_actions, size), np.float32)


def ridge_baseline(features: Floats | Recipe, losses: Floats, baseline: float, ridge: float) -> Floats:
    """m(x): one ridge regression of y - b on the features of all rows, each predicted without itself. [n]"""
    made = features if isinstance(features, Recipe) else as_they_are(features)
    n = len(losses)
    coefficients, played = np.zeros((1, made.width), np.float32), np.zeros(n, np.float32)
    _fit_actions(made, np.arange(n), losses, np.array([n]), baseline, ridge, coefficients, played)
    return played


@compiled
def _predict(made: Recipe, coefficients: Floats, baseline: float, n: int, out: Floats) -> None:
    """out = m(x, a), [blocks, K, rows of a block]"""
    size = out.shape[2]
    X = np.empty((coefficients.shape[1], size), np.float32)
    for b in range(len(out)):
        rows = min(size, n - b * size)
        fill(made, b * size, rows, X)
        np.dot(coefficients, X, out[b])
        for k in range(out.shape[1]):
            for r in range(rows):
                out[b, k, r] = min(max(out[b, k, r] + baseline, -1.0), 0.0)
            out[b, k, rows:] = 0


@compiled
def _fit_actions(
    made: Recipe, order: Ints, losses: Floats, ends: Ints, baseline: float, ridge: float, coefficients: Floats,
    played: Floats,
) -> None:  # fmt: skip
    """Rows by action: action k's are order[ends[k - 1] : ends[k]]. Coefficients [K, d], leave-one-out fits [n].

    With G = XᵀX + ridge and leverage h_s = x_s G⁻¹ x_sᵀ a row is left out by (ŷ_s - h_s y_s) / (1 - h_s). With fewer
    rows than features the smaller system M = XXᵀ + ridge tells the same: c = XᵀM⁻¹y, and 1 - h_s = ridge · M⁻¹_ss.
    """
    d = coefficients.shape[1]
    start = 0
    for k in range(len(ends)):
        own = order[start : ends[k]]
        start = ends[k]
        if len(own) == 0:
            continue
        if len(own) < d:
            _fit_few(made, own, losses, baseline, ridge, coefficients[k], played)
        else:
            _fit_many(made, own, losses, baseline, ridge, coefficients[k], played)


@compiled
def _fit_few(
    made: Recipe, own: Ints, losses: Floats, baseline: float, ridge: float, coefficients: Floats, played: Floats
) -> None:
    m = len(own)
    X, target = _rows(made, own, losses, baseline, len(coefficients))
    root = _inverse_root(np.dot(X.T, X).astype(np.float64), ridge)
    dual = np.dot(root.T, np.dot(root, target))  # M⁻¹ y
    coefficients[:] = np.dot(X, dual.astype(np.float32))
    for s in range(m):
        size = 0.0
        for j in range(s, m):
            size += root[j, s] * root[j, s]
        played[own[s]] = _cut(target[s] - dual[s] / size + baseline)


@compiled
def _fit_many(
    made: Recipe, own: Ints, losses: Floats, baseline: float, ridge: float, coefficients: Floats, played: Floats
) -> None:
    d = len(coefficients)
    products, moments = np.zeros((d, d)), np.zeros(d)
    for first in range(0, len(own), BLOCK):
        X, target = _rows(made, own[first : first + BLOCK], losses, baseline, d)
        products += np.dot(X, X.T)
        moments += np.dot(X, target.astype(np.float32))
    root = _inverse_root(products, ridge)
    coefficients[:] = np.dot(root.T, np.dot(root, moments))
    single = root.astype(np.float32)
    for first in range(0, len(own), BLOCK):
        places = own[first : first + BLOCK]
        X, target = _rows(made, places, losses, baseline, d)
        scaled, fit = np.dot(single, X), np.dot(coefficients, X)  # a column's |scaled|² is its leverage
        leverage = np.zeros(len(places), np.float32)
        for i in range(d):
            for s in range(len(places)):
                leverage[s] += scaled[i, s] * scaled[i, s]
        for s in range(len(places)):
            played[places[s]] = _cut((fit[s] - leverage[s] * target[s]) / (1 - leverage[s]) + baseline)


@compiled
def _rows(made: Recipe, places: Ints, losses: Floats, baseline: float, width: int) -> tuple[Floats, Floats]:
    """The features of the rows at `places`, [width, rows], and y - b."""
    X, target = np.empty((width, len(places)), np.float32), np.empty(len(places))
    pick(made, places, X)
    for s in range(len(places)):
        target[s] = losses[places[s]] - baseline
    return X, target


@compiled
def _cut(loss: float) -> float:
    return min(max(loss, -1.0), 0.0)


@compiled
def _inverse_root(products: Floats, ridge: float) -> Floats:
    """L⁻¹ of products + ridge = L Lᵀ, by rows of L⁻¹ so that the loops vectorise. [d, d]"""
    d = len(products)
    L = np.linalg.cholesky(products + ridge * np.eye(d))
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
