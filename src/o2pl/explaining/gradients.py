"""Explanations of neural policies: integrated gradients from the average context.

With z the inputs as the network sees them (0: the average context) and f the difference of two scores,

    f(z) - f(0) = Σ_i z_i ∫ ∂f/∂z_i (t z) dt,  t from 0 to 1

so each input has a term, and f(0) is the intercept. The integral is a Gauss-Legendre sum. Points are added until the
terms sum to the difference within `CLOSE`. The terms do not separate an input's own effect from its interactions: there
are no products among them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from o2pl.data.contexts import as_contexts
from o2pl.explaining.terms import INTERCEPT, Compared, Term, terms_of
from o2pl.kernels.registry import features_for_registered
from o2pl.policies.neural import JaxPolicy, Neural, NeuralSets
from o2pl.protocols import Floats

CLOSE = 1e-6  # tolerance of the sum, relative to 1 + |difference|
_POINTS, _MOST = 32, 2048


@lru_cache
def _gradient_points(count: int) -> tuple[Floats, Floats]:
    """Return Gauss-Legendre points in [0, 1] and their weights."""
    places, weights = np.polynomial.legendre.leggauss(count)
    return (places + 1) / 2, weights / 2


def integrated_gradients(z: Floats, scores: Callable[[Floats], Floats], slopes: Callable[[Floats], Floats]) -> Floats:
    """Return each input's part of scores(z) - scores(0). scores: [n, d] -> [n], slopes: [n, d] -> [n, d]"""
    ends = scores(np.stack([z, np.zeros_like(z)]))
    difference = float(ends[0] - ends[1])
    count = _POINTS
    while True:
        places, weights = _gradient_points(count)
        parts = z * (weights @ slopes(places[:, None] * z))
        if abs(parts.sum() - difference) <= CLOSE * (1 + abs(difference)) or count >= _MOST:
            return np.asarray(parts)
        count *= 4


def _gradients_of_outputs(policy: Any, params: Floats, outputs: Floats) -> tuple[Any, Any]:
    """Return functions for value and gradient of outputs · scores. outputs [K], or [1] for one score per row."""

    def scores(rows: Floats) -> Floats:
        return np.asarray(policy.input_scores(params, rows) @ outputs)

    return scores, lambda rows: np.asarray(policy.input_slopes(params, rows, outputs))


@terms_of.register(Neural)
@terms_of.register(NeuralSets)
@terms_of.register(JaxPolicy)
def _(policy: Any, member: Any, compared: Compared) -> list[Term] | None:
    rows: Any = compared.inputs
    seen = features_for_registered(member.features, member.seen, rows)
    if as_contexts(seen).items is not None or seen.shape[1] != len(compared.names):
        return None  # features that are not single inputs
    z: Floats = np.asarray(seen, np.float64)
    constant, parts = 0.0, np.zeros(z.shape[1], z.dtype)
    if policy.sets:
        scores, slopes = _gradients_of_outputs(policy, member.params, np.ones(1))
        first, second = (integrated_gradients(z[place], scores, slopes) for place in (compared.first, compared.second))
        parts = first - second
    else:
        outputs = np.zeros(policy.n_actions)
        outputs[compared.first] += 1
        outputs[compared.second] -= 1
        scores, slopes = _gradients_of_outputs(policy, member.params, outputs)
        constant, parts = float(scores(np.zeros_like(z[:1]))[0]), integrated_gradients(z[0], scores, slopes)
    terms = [Term(one.name, one.features, float(adds)) for one, adds in zip(compared.names, parts, strict=True)]
    return [Term(INTERCEPT, (), constant), *terms]
