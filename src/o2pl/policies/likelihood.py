"""Log probabilities of any policy, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.data.contexts import as_contexts
from o2pl.policies.sampling import log_softmax, pull_to_scores
from o2pl.protocols import Array, Floats, Policy, Pullback


def log_likelihood(policy: Policy, params: Floats, features: object, actions: Array) -> tuple[Floats, Pullback]:
    """Return log π(a_s|x_s), [n], and its pullback."""
    scores, pull_scores = policy.forward(params, features, actions)
    if policy.continuous:
        return scores, pull_scores
    log_pi, pull = _log_probabilities(scores, features)
    played = as_contexts(features).places(actions)

    def pullback(cotangent: Floats) -> Floats:
        every = np.zeros_like(log_pi)
        every[played] = cotangent
        return pull_scores(pull(every))

    return log_pi[played], pullback


def log_probabilities(policy: Policy, params: Floats, features: Any) -> tuple[Floats, Pullback]:
    """Return log π(·|x_s) of a discrete policy, [n, K] or flat, and its pullback."""
    scores, pull_scores = policy.forward(params, features, np.empty(0, np.int64))
    log_pi, pull = _log_probabilities(scores, features)
    return log_pi, lambda cotangent: pull_scores(pull(cotangent))


def probabilities(policy: Policy, params: Floats, features: Any) -> Floats:
    """Return π(·|x_s) of a discrete policy, [n, K] or flat. A row's result does not depend on other rows."""
    return np.exp(_log_probabilities(policy.scores(params, features), features)[0])


def _log_probabilities(scores: Floats, features: object) -> tuple[Floats, Pullback]:
    sets = as_contexts(features).offsets
    log_pi = log_softmax(scores, sets)
    return log_pi, lambda cotangent: pull_to_scores(log_pi, cotangent, sets)
