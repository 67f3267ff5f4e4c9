"""Control variates m(x, a): rough models of the losses that reduce variance and are never used to act.

Before clipping, min(w, α)(y - m(x, a)) + Σ_a' π(a'|x) m(x, a') has the same mean for every m that does not depend on
the row's own loss. This is why the prediction of the played action leaves its row out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from o2pl.protocols import Floats, Ints

Rows = Callable[[Ints | slice], Floats]  # returns features of these rows, [m, d], single precision
_STRETCH = 2**12  # rows per block of features
_SHORT, _SMALL = 1000, 2**17  # limits of rows, and of elements for all actions, for the short version
_HELD = 2**21  # elements of features that are computed once instead of for every use


class Control(NamedTuple):
    """Predicted losses, clipped to [-1, 0]."""

    by_action: Floats  # m(x_s, a), [K, n], single precision
    played: Floats  # m(x_s, a_s) from a fit without row s, [n]; single precision for long logs

    def of_rows(self, rows: slice | Ints) -> Floats:
        """Return the predictions of rows, [n, K]."""
        return self.by_action[:, rows].T

    def part(self, rows: slice) -> Control:
        """Return the control variate of these rows."""
        return Control(np.ascontiguousarray(self.by_action[:, rows]), self.played[rows])


def ridge_control(
    features: Floats | Rows, actions: Ints, losses: Floats, n_actions: int, baseline: float, ridge: float
) -> Control:
    """Fit one ridge regression per action on its rows, of y - b on the features; unplayed actions predict b."""
    n = len(actions)
    rows = _held_for_control(features, n)
    if n <= _SHORT:
        X = rows(slice(0, n))
        if X.size * (n_actions + X.shape[1]) <= _SMALL:
            return _short_control(X, actions, losses - baseline, n_actions, baseline, ridge)
    played, coefficients = np.empty(n, np.float32), []
    for k in range(n_actions):
        own = np.flatnonzero(actions == k)
        fitted, left_out = _control_ridge(rows, own, losses[own] - baseline, ridge)
        played[own] = left_out
        coefficients.append(fitted)
    width = max(len(fitted) for fitted in coefficients)
    W = np.stack([np.zeros(width) if len(fitted) == 0 else fitted for fitted in coefficients]).astype(np.float32)
    by_action = np.empty((n_actions, n), np.float32)
    for start in range(0, n, _STRETCH):
        own_rows = slice(start, min(start + _STRETCH, n))
        by_action[:, own_rows] = W @ rows(own_rows).T
    return Control(_control_as_losses(by_action, baseline), _control_as_losses(played, baseline))


def _control_as_losses(predicted: Floats, baseline: float) -> Floats:
    """Add b and clip to [-1, 0], in place: for a long log, copies would take more memory than the learner."""
    predicted += predicted.dtype.type(baseline)
    return np.clip(predicted, -1, 0, out=predicted)


def _short_control(X: Floats, actions: Ints, targets: Floats, n_actions: int, baseline: float, ridge: float) -> Control:
    """Like `ridge_control`, for a short log: all actions together, to avoid the overhead per action."""
    X = X.astype(np.float64)
    own = (actions[:, None] == np.arange(n_actions)).T[:, :, None] * X  # [K, n, d]: rows of each action
    inverses = np.linalg.inv(own.transpose(0, 2, 1) @ X + ridge * np.eye(X.shape[1]))  # [K, d, d]
    coefficients = np.einsum("kij,knj,n->ki", inverses, own, targets)
    leverage = np.einsum("si,sij,sj->s", X, inverses[actions], X)
    fitted = coefficients @ X.T  # [K, n]
    played = (fitted[actions, np.arange(len(actions))] - leverage * targets) / (1 - leverage)
    by_action = np.clip(fitted + baseline, -1, 0).astype(np.float32)
    return Control(by_action, np.clip(played + baseline, -1, 0))


class RidgeSums:
    """`ridge_control` in blocks: first sums over rows, then predictions for each row."""

    def __init__(self, n_actions: int, ridge: float) -> None:
        self._ridge, self._n_actions = ridge, n_actions
        self._products: Any = 0.0  # Σ x xᵀ of each action's rows, [K, d, d]
        self._moments: Any = 0.0  # Σ x y, [K, d]

    def add(self, X: Floats, actions: Ints, targets: Floats) -> None:
        """Add rows. targets: y - b. X [n, d]"""
        own = [np.flatnonzero(actions == k) for k in range(self._n_actions)]
        self._products = self._products + np.stack([X[rows].T @ X[rows] for rows in own]).astype(np.float64)
        self._moments = self._moments + np.stack([targets[rows] @ X[rows] for rows in own])

    def solved(self) -> RidgeModel:
        inverses = np.stack([_inverse_for_control(each, self._ridge) for each in self._products])
        return RidgeModel(np.einsum("kij,kj->ki", inverses, self._moments), inverses)


class RidgeModel(NamedTuple):
    coefficients: Floats  # [K, d]
    inverses: Floats  # of XᵀX + ridge, [K, d, d]

    def control(self, X: Floats, actions: Ints, targets: Floats, baseline: float) -> Control:
        """Return the predictions of these rows, each without itself; see `_control_ridge`."""
        fitted = self.coefficients.astype(np.float32) @ X.T  # [K, n]
        played = np.empty(len(X))
        for k, inverse in enumerate(self.inverses.astype(np.float32)):
            rows = np.flatnonzero(actions == k)
            own = X[rows]
            leverage = np.einsum("sd,sd->s", own @ inverse, own)
            played[rows] = (own @ self.coefficients[k] - leverage * targets[rows]) / (1 - leverage)
        return Control(_control_as_losses(fitted, baseline), _control_as_losses(played, baseline))


def ridge_baseline(features: Floats | Rows, losses: Floats, baseline: float, ridge: float) -> Floats:
    """Return m(x): one ridge regression of y - b on the features of all rows, each predicted without itself. [n]

    With real-valued actions it replaces b. A single baseline would reward a policy for avoiding contexts that pay less
    than others: in a finite log it can move away from the actions tried there, where all weights are 0.
    """
    rows = _held_for_control(features, len(losses))
    _, left_out = _control_ridge(
        lambda some: rows(some).astype(np.float64), np.arange(len(losses)), losses - baseline, ridge
    )
    return _control_as_losses(left_out, baseline)


def _held_for_control(features: Floats | Rows, n: int) -> Rows:
    """Return the features of n rows as a function; all of them are computed at once if they are few."""
    if not callable(features):
        return features.__getitem__
    width = features(slice(0, min(n, 1))).shape[1]
    return features(slice(0, n)).__getitem__ if n * width <= _HELD else features


def _control_ridge(rows: Rows, places: Ints, targets: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Return coefficients [d], and each row's leave-one-out prediction, [m].

    With G = XᵀX + ridge and leverage h_s = x_s G⁻¹ x_sᵀ, it is (ŷ_s - h_s y_s) / (1 - h_s). With fewer rows than
    features, the smaller system M = XXᵀ + ridge gives the same: c = XᵀM⁻¹y, and 1 - h_s = ridge · M⁻¹_ss.
    """
    m = len(places)
    if m == 0:
        return np.empty(0), np.empty(0)
    first = rows(places[:_STRETCH])
    d = first.shape[1]
    if m < d:
        inverse = _inverse_for_control(first @ first.T, ridge)
        dual = inverse @ targets
        return dual @ first, targets - dual / np.diag(inverse)
    stretches = [(places[at : at + _STRETCH], slice(at, at + _STRETCH)) for at in range(0, m, _STRETCH)]
    products, moments = np.zeros((d, d)), np.zeros(d)
    for at, own in stretches:
        X = first if len(stretches) == 1 else rows(at)
        products += X.T @ X
        moments += targets[own] @ X
    inverse = _inverse_for_control(products, ridge)
    coefficients, narrow = inverse @ moments, inverse.astype(first.dtype)
    left_out = np.empty(m)
    for at, own in stretches:
        X = first if len(stretches) == 1 else rows(at)
        leverage = np.einsum("sd,sd->s", X @ narrow, X)
        left_out[own] = (X @ coefficients - leverage * targets[own]) / (1 - leverage)
    return coefficients, left_out


def _inverse_for_control(products: Floats, ridge: float) -> Floats:
    return np.linalg.inv(products.astype(np.float64) + ridge * np.eye(len(products)))
