"""Reward models fitted to logged rows: one per action, or one for all with an additive effect per action.

All predict the difference from a level b, the prediction for untried actions: ridge  b + θ_a·φ,  logistic  σ(logit b +
θ_a·φ).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.oracles.lbfgs import LBFGS
from o2pl.protocols import Floats, Ints

Link = Literal["ridge", "logistic"]
_NEVER = 1e-2  # logistic levels stay this far from 0 and 1
_SOLVER = LBFGS(iterations=100, tolerance=1e-5)


def check_model_link(name: str, link: object) -> Link:
    if link not in ("ridge", "logistic"):
        raise InvalidInput(f"{name}: found {link!r}, expected 'ridge' or 'logistic'")
    return link  # one of the two, checked above


def fit_models_per_action(
    link: Link,
    features: Floats,
    actions: Ints,
    targets: Floats,
    n_actions: int,
    l2: float,
    level: float = 0.0,
    start: Floats | None = None,
) -> Floats:
    """Return θ of each action's model, [K, d]. `level` is b; a logistic fit starts at `start`."""
    X = np.asarray(features, np.float64)
    if link == "ridge":
        return ridge_model_weights(X, actions, targets - level, n_actions, l2)
    return logistic_model_weights(X, actions, targets, n_actions, l2, model_logit(level), start)


def predict_models_per_action(link: Link, weights: Floats, features: Floats, level: float = 0.0) -> Floats:
    """Return the predicted reward of every action, [n, K]."""
    linear = np.asarray(features, np.float64) @ weights.T
    return level + linear if link == "ridge" else _model_sigmoid(model_logit(level) + linear)


def model_features_with_action(features: Floats, actions: Ints, n_actions: int) -> Floats:
    """Return the features of the additive model: φ(x) and an indicator of the action, [n, d + K]."""
    out: Floats = np.hstack([np.asarray(features, np.float64), np.eye(n_actions)[actions]])
    return out


def fit_additive_model(
    link: Link, features: Floats, actions: Ints, targets: Floats, n_actions: int, l2: float, level: float = 0.0
) -> Floats:
    """Return β and γ of b + β·φ(x) + γ_a: one model for all actions, without interactions. [d + K]"""
    X = model_features_with_action(features, actions, n_actions)
    weights: Floats = fit_models_per_action(link, X, np.zeros(len(X), np.int64), targets, 1, l2, level)[0]
    return weights


def predict_additive_model(link: Link, weights: Floats, features: Floats, n_actions: int, level: float = 0.0) -> Floats:
    """Return the predicted reward of every action, [n, K]."""
    d = len(weights) - n_actions
    linear = (np.asarray(features, np.float64) @ weights[:d])[:, None] + weights[d:]
    return level + linear if link == "ridge" else _model_sigmoid(model_logit(level) + linear)


def ridge_model_weights(X: Floats, actions: Ints, targets: Floats, n_actions: int, l2: float) -> Floats:
    """Return argmin Σ_{s: a_s = k} (θ_k·φ_s - y_s)² + l2 |θ_k|², [K, d]; solves the smaller linear system."""
    weights = np.zeros((n_actions, X.shape[1]))
    for action in np.unique(actions):
        rows = np.flatnonzero(actions == action)
        own, y = X[rows], targets[rows]
        if len(rows) < X.shape[1]:
            weights[action] = own.T @ np.linalg.solve(own @ own.T + l2 * np.eye(len(rows)), y)
        else:
            weights[action] = np.linalg.solve(own.T @ own + l2 * np.eye(X.shape[1]), own.T @ y)
    return weights


def logistic_model_weights(
    X: Floats,
    actions: Ints,
    targets: Floats,
    n_actions: int,
    l2: float,
    offset: float,
    start: Floats | None = None,
    importance: Floats | None = None,
) -> Floats:
    """Return argmin Σ_s v_s (log(1 + e^{z_s}) - y_s z_s) + l2/2 |θ|², z_s = offset + θ_{a_s}·φ_s; y in [0, 1]. [K, d]

    v: weights of the rows; default 1.
    """
    n, d = X.shape
    if not n:
        return np.zeros((n_actions, d))
    order = np.argsort(actions, kind="stable")  # group the rows by action
    ends = np.searchsorted(actions[order], np.arange(n_actions + 1))
    X, y = X[order], targets[order]
    v = np.ones(n) if importance is None else importance[order]
    slices = [(k, slice(ends[k], ends[k + 1])) for k in range(n_actions) if ends[k] < ends[k + 1]]
    z, gradient = np.empty(n), np.zeros((n_actions, d))

    def function(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(n_actions, d)
        for k, rows in slices:
            z[rows] = X[rows] @ weights[k]
        shifted = z + offset
        softplus = np.logaddexp(0.0, shifted)
        residuals = v * (np.exp(shifted - softplus) - y)
        for k, rows in slices:
            gradient[k] = residuals[rows] @ X[rows]
        value = float(v @ (softplus - y * shifted)) + 0.5 * l2 * float(flat @ flat)
        return value / n, (gradient.reshape(-1) + l2 * flat) / n

    begin = np.zeros(n_actions * d) if start is None else start.reshape(-1)
    return _SOLVER(function, begin).params.reshape(n_actions, d)


def model_logit(level: float) -> float:
    p = min(max(level, _NEVER), 1 - _NEVER)
    return float(np.log(p / (1 - p)))


def _model_sigmoid(z: Floats) -> Floats:
    return np.asarray(np.exp(z - np.logaddexp(0.0, z)))
