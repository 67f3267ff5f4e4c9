"""The reward as a curve over the action, whose shape depends on the context.

    f(x, a) = Σ_i θ_i s_i P_{j_i}(a) φ_{m_i}(x)

P_j are Legendre polynomials of the action's relative position between its bounds, with mean square 1; φ a constant, the
inputs and, if they are few, their products. Terms have a total degree of at most `degree` in the action and the inputs.
s_i is 1, halved for each power of the action beyond the square: curves are smooth unless the log shows otherwise.

It acts by several posterior draws θ_1, ..., θ_S. Each takes the best action of its own curve, as sharply as the noise
allows, and they act in equal shares: far apart while little is known, nearly identical in the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from o2pl import _core
from o2pl.policies.cells import Cells
from o2pl.protocols import Array, Floats, Ints, Pullback
from o2pl.storage import storable

_SMOOTH = 2  # largest power of the action with s = 1


@storable
@dataclass(frozen=True)
class Curve:
    """The reward curve. Parameters: sharpness, θ [D], then θ_1, ..., θ_S. `inputs`: features after the constant."""

    cells: Cells
    inputs: int
    degree: int = 4
    draws: int = 8
    spread: float = 0.7  # of the draws, in posterior standard deviations
    sharpness: float = 40.0  # e^-1 for a reward lower by 1/40 of the noise's standard deviation
    continuous = True

    def terms(self, n_features: int) -> tuple[Ints, Ints, Floats]:
        """Return the power of the action, the feature, and s of each term. [D]"""
        return _curve_terms(self.degree, self.inputs, n_features)

    def n_params(self, n_features: int) -> int:
        return 1 + (1 + self.draws) * len(self.terms(n_features)[0])

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return np.zeros(self.n_params(n_features))

    def join(self, centre: Floats, deviations: Floats, noise: float) -> Floats:
        """Return the parameters from θ [D], draws in units of the noise [S, D], and the noise variance."""
        scale = math.sqrt(noise)
        draws = centre + self.spread * scale * deviations
        return np.concatenate([[self.sharpness / scale], centre, draws.reshape(-1)])

    def centre(self, params: Floats) -> Floats:
        """Return θ [D]."""
        return params[1 : 1 + (len(params) - 1) // (1 + self.draws)]

    def design(self, features: Floats, actions: Floats) -> Floats:
        """Return the terms of rows, so that f = design · θ. [n, D]"""
        return _core.curve_design(features, self.cells.place(actions), *self.terms(features.shape[1]), self.degree)

    def forward(self, params: Floats, features: Floats, actions: Array) -> tuple[Floats, Pullback]:
        """Return f(x_s, a_s), [n], and its pullback."""
        rows, theta = self.design(features, actions), self.centre(params)

        def pullback(cotangent: Floats) -> Floats:
            gradient = np.zeros_like(params)
            gradient[1 : 1 + len(theta)] = cotangent @ rows
            return gradient

        return rows @ theta, pullback

    def scores(self, params: Floats, features: Floats) -> Floats:
        """Return f at the middle of each cell, [n, K]."""
        return self.along(params, features, self.cells.count)

    def along(self, params: Floats, features: Floats, places: int) -> Floats:
        """Return f at the middles of `places` equal parts of the bounds, [n, places]."""
        W = self._weights(self.centre(params)[None], features.shape[1], places)[0]
        return _core.project(features.astype(np.float64), W.reshape(places, -1))

    def acting(self, params: Floats, n_features: int) -> list[tuple[Cells, Floats]]:
        """Return the draws, each as a softmax over cells."""
        draws = params[0] * params[1:].reshape(1 + self.draws, -1)[1:]
        return [(self.cells, own) for own in self._weights(draws, n_features, self.cells.count)]

    def _weights(self, thetas: Floats, n_features: int, places: int) -> Floats:
        """Return the weights of the features at each position: [places · n_features] for each θ of thetas [S, D]."""
        return _core.curve_weights(thetas, self.basis(places), *self.terms(n_features), n_features)

    def basis(self, places: int) -> Floats:
        """Return P_j at the middles of equal parts, [places, degree + 1]."""
        return _curve_basis(self.degree, places)


@lru_cache(maxsize=16)
def _curve_terms(degree: int, inputs: int, n_features: int) -> tuple[Ints, Ints, Floats]:
    order = np.where(np.arange(n_features) <= inputs, 1, 2)
    order[0] = 0
    powers, features = np.nonzero(np.arange(degree + 1)[:, None] + order <= degree)
    return powers, features, 0.5 ** np.maximum(powers - _SMOOTH, 0.0)


@lru_cache(maxsize=16)
def _curve_basis(degree: int, places: int) -> Floats:
    return _core.legendre((np.arange(places) + 0.5) / places, degree + 1)
