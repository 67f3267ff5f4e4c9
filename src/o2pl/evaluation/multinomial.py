"""Multinomial logistic regression of actions on contexts, from rows of a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.data.contexts import ActionSets
from o2pl.engine.member import LINEAR
from o2pl.features import Standardise
from o2pl.oracles.lbfgs import LBFGS
from o2pl.policies import ActionWise
from o2pl.policies.likelihood import log_likelihood, probabilities
from o2pl.protocols import Floats, Ints, State

_MOST_ROWS = 20_000  # more rows hardly improve the few fitted parameters
_DECAY = 1.0  # ½ |weights|² added to the summed loss: otherwise the model is overconfident about rare actions
_SCALE, _ACTION_WISE = Standardise(), ActionWise()
_FIT = LBFGS(iterations=40, tolerance=1e-4)


@dataclass(frozen=True, eq=False)
class Multinomial:
    """The model μ̂(·|x) = softmax(weights · x)."""

    weights: Floats  # [k, d], float32
    seen: State  # state of the standardisation

    def __call__(self, contexts: Floats) -> Floats:
        """Return the probabilities of all actions, [n, k]."""
        scores = LINEAR.transform(self.seen, contexts) @ self.weights.T
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores, out=scores).astype(np.float64)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fit_multinomial(contexts: Floats, actions: Ints, k: int, start: Multinomial | None = None) -> Multinomial:
    """Fit to at most about 20,000 rows, evenly spread. start: an earlier fit as a warm start."""
    some = slice(None, None, 1 + len(actions) // _MOST_ROWS)
    rows, played = contexts[some], actions[some]
    n, seen = len(rows), LINEAR.observe(LINEAR.init(contexts.shape[1]), rows)
    X = np.ascontiguousarray(LINEAR.transform(seen, rows), np.float32)
    at = (np.arange(n), played)

    def loss(params: Floats) -> tuple[float, Floats]:
        """Return -mean log μ̂(a|x) + decay and its gradient, in single precision, with one exponential."""
        W = params.reshape(k, -1)
        scores = X @ W.T.astype(np.float32)
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[at].astype(np.float64)
        totals = np.exp(scores, out=scores).sum(axis=1)
        scores /= totals[:, None]
        scores[at] -= 1
        gradient = (scores.T @ X).astype(np.float64) / n + _DECAY / n * W
        value = float(np.mean(np.log(totals, dtype=np.float64) - own))
        return value + 0.5 * _DECAY / n * float(params @ params), gradient.reshape(-1)

    first = np.zeros(k * X.shape[1]) if start is None else start.weights.reshape(-1).astype(np.float64)
    return Multinomial(_FIT(loss, first).params.reshape(k, -1).astype(np.float32), seen)


@dataclass(frozen=True, eq=False)
class ActionWiseModel:
    """The model μ̂ over the actions of a set: softmax of one weight vector times each action's features."""

    params: Floats
    seen: State

    def __call__(self, sets: ActionSets) -> Floats:
        """Return the probabilities, flat like the rows of the sets."""
        rows = _SCALE.transform(self.seen, sets.values)
        return probabilities(_ACTION_WISE, self.params, ActionSets(rows, sets.offsets))


def fit_action_wise_multinomial(sets: ActionSets, actions: Ints) -> ActionWiseModel:
    """Fit to the first rows, at most about 20,000."""
    some, played = sets[:_MOST_ROWS], actions[:_MOST_ROWS]
    n, width = len(played), sets.values.shape[1]
    seen = _SCALE.observe(_SCALE.init(width), some.values)
    features = ActionSets(_SCALE.transform(seen, some.values), some.offsets)

    def loss(params: Floats) -> tuple[float, Floats]:
        log_prob, pullback = log_likelihood(_ACTION_WISE, params, features, played)
        gradient = pullback(np.full(n, -1 / n)) + _DECAY / n * params
        return -float(log_prob.mean(dtype=np.float64)) + 0.5 * _DECAY / n * float(params @ params), gradient

    return ActionWiseModel(_FIT(loss, _ACTION_WISE.init(width)).params, seen)
