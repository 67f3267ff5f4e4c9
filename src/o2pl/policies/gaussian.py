"""Continuous actions: a ~ N(centre + θ · φ(x), scale²)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.protocols import Array, Floats, Pullback
from o2pl.storage import storable

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_FARTHEST = 300.0  # limit of |log scale|: a line search may overflow


@storable
@dataclass(frozen=True)
class Gaussian:
    """A normal policy. Parameters: θ [d]; with `learn_scale` also the log of the scale, [d + 1]."""

    centre: float = 0.0
    scale: float = 1.0
    learn_scale: bool = False
    continuous = True

    def n_params(self, n_features: int) -> int:
        return n_features + self.learn_scale

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        start = np.zeros(self.n_params(n_features))
        if self.learn_scale:
            start[-1] = math.log(self.scale)
        return start

    def split(self, params: Floats) -> tuple[Floats, float]:
        """Return θ and the scale."""
        if not self.learn_scale:
            return params, self.scale
        return params[:-1], math.exp(min(max(params[-1], -_FARTHEST), _FARTHEST))

    def scores(self, params: Floats, features: Floats) -> Floats:
        """Return the mean action of each row minus the centre, [n]. A row's result does not depend on other rows."""
        theta, _ = self.split(params)
        return _core.project(features.astype(np.float64), theta[None])[:, 0]

    def forward(self, params: Floats, features: Floats, actions: Array) -> tuple[Floats, Pullback]:
        theta, scale = self.split(params)
        z = (actions - self.centre - features @ theta) / scale

        def pullback(cotangent: Floats) -> Floats:
            gradient = np.empty_like(params)
            gradient[: len(theta)] = (cotangent * z / scale) @ features
            if self.learn_scale:
                gradient[-1] = cotangent @ (z**2 - 1)
            return gradient

        return -0.5 * z**2 - math.log(scale) - LOG_SQRT_2PI, pullback

    def imitate(self, features: Floats, actions: Floats) -> Floats:
        """Return parameters that fit these actions by least squares: weights are then near 1."""
        X = features.astype(np.float64)
        gram = X.T @ X + 1e-3 * np.eye(X.shape[1])
        theta = np.linalg.solve(gram, X.T @ (actions - self.centre))
        if not self.learn_scale:
            return theta
        spread = np.std(actions - self.centre - X @ theta)
        return np.append(theta, math.log(spread) if spread > 0 else math.log(self.scale))

    def mean(self, scores: Floats) -> Floats:
        return self.centre + scores

    def moments(self, scores: Floats, params: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the action, [n] each."""
        return self.mean(scores), np.full(len(scores), self.split(params)[1])

    def density(self, scores: Floats, params: Floats, actions: Floats) -> Floats:
        return _core.normal_density(actions, self.mean(scores), self.split(params)[1])

    def sample(self, scores: Floats, params: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        """Draw one action per score from one uniform number each. Returns actions and densities. [n]"""
        return _core.draw_normal(self.mean(scores), self.split(params)[1], uniforms)
