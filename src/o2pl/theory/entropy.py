"""Entropy of the built-in policy classes: log N(ε, log Π, sup norm) and its exponent p.

p = 0 means growth like log(e/ε), p > 0 like ε^{-p}. All built-in classes have finitely many parameters, so p = 0 on
bounded features and parameters; a floor of the probabilities does not change it. If a probability may be 0, log π is
unbounded and there is no bound. Thresholds over all real numbers have no finite cover (two of them differ by
log((1 - floor)/floor) somewhere): the built-in class is a finite list of them.
"""

from __future__ import annotations

import math

from o2pl.errors import InvalidInput

# by the name of the class in `policies` (features of any map are features here; UniformMixture keeps its policy's p;
# Cells and Curve act for `ContinuousBandit`, whose objective is not the paper's)
ENTROPY_EXPONENTS: dict[str, float] = {
    "FiniteClass": 0.0,
    "ThresholdClass": 0.0,
    "Softmax": 0.0,
    "SparseSoftmax": 0.0,
    "ActionWise": 0.0,
    "Gaussian": 0.0,
    "Truncated": 0.0,
    "Neural": 0.0,  # networks of fixed size are Lipschitz in bounded weights
    "NeuralSets": 0.0,
    "NeuralGaussian": 0.0,
    "JaxPolicy": 0.0,  # if its function is Lipschitz
}


def finite_entropy(members: int) -> float:
    """Return log J, an upper bound of log N(ε) at every ε."""
    return math.log(_positive_entropy("members", members))


def softmax_entropy(eps: float, n_params: int, features: float, params: float) -> float:
    """Return an upper bound for linear softmax policies with |φ(x)| ≤ features and each action's |θ_a| ≤ params.

    |log π_θ - log π_θ'| ≤ 2 max_a |φ · (θ_a - θ'_a)|, and a ball of radius S in d dimensions has a cover of
    (1 + 2S/ε)^d balls of radius ε: log N(ε) ≤ n_params log(1 + 4 features params / ε). With weights that the actions
    share (`ActionWise`) the same holds of its one θ.
    """
    return _ball_entropy(eps, n_params, 2 * _positive_entropy("features", features), params)


def gaussian_entropy(
    eps: float, n_params: int, features: float, params: float, actions: float, scale: float = 1.0
) -> float:
    """Return an upper bound for Gaussian policies with a fixed scale, on actions within `actions` of the centre.

    |log π_θ - log π_θ'| = |μ - μ'| |2a - μ - μ'| / (2 scale²) ≤ F (A + F S)/scale² |θ - θ'|. On unbounded actions there
    is no finite cover.
    """
    F, A = _positive_entropy("features", features), _positive_entropy("actions", actions)
    return _ball_entropy(eps, n_params, F * (A + F * params) / _positive_entropy("scale", scale) ** 2, params)


def smooth_entropy_exponent(dimensions: int, smoothness: float) -> float:
    """Return p = d/s of logits in a ball of C^s([0, 1]^d); the theory requires p < 2."""
    p = _positive_entropy("dimensions", dimensions) / _positive_entropy("smoothness", smoothness)
    if p >= 2:
        raise InvalidInput(f"d/s: found {p:g}, expected an entropy exponent below 2")
    return p


def _ball_entropy(eps: float, n_params: int, lipschitz: float, radius: float) -> float:
    """Return d log(1 + 2 L S / ε): a ball of radius S, mapped with Lipschitz constant L."""
    return n_params * math.log1p(2 * lipschitz * _positive_entropy("params", radius) / _positive_entropy("eps", eps))


def _positive_entropy(name: str, value: float) -> float:
    if not value > 0:
        raise InvalidInput(f"{name}: found {value}, expected a number > 0")
    return value
