"""A normal policy that is truncated to bounds, log-normal, or heteroscedastic.

    u = a, or log a with `log`,     u ~ N(μ, s²), cut to [low, high] and scaled up to integrate to 1
    μ = centre + θ·φ(x),            log s = log scale + ω, or + ω·φ(x) with `heteroscedastic`
    log π(a|x) = -z²/2 - log s - ½ log 2π - log(Φ(β) - Φ(α)) (- log a)
    z = (u - μ)/s,   α = (low - μ)/s,   β = (high - μ)/s

Truncated, not clipped: actions outside the bounds are never played. Clipped actions would pile up at the bounds, where
they have probabilities instead of densities, and importance weights would have to distinguish the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.errors import InvalidInput
from o2pl.policies.gaussian import LOG_SQRT_2PI
from o2pl.protocols import Array, Floats, Pullback
from o2pl.special import log_ndtr, ndtri_exp
from o2pl.storage import storable

NARROWEST, WIDEST = -1.0, 1.0  # limits of log(s / scale): a narrower policy would stop exploring too early


@storable
@dataclass(frozen=True)
class Truncated:
    """A truncated normal. Parameters: θ [d]; then ω: one number with `learn_scale`, [d] with `heteroscedastic`."""

    centre: float = 0.0
    scale: float = 1.0
    learn_scale: bool = False
    heteroscedastic: bool = False
    bounds: tuple[float, float] | None = None
    log: bool = False
    continuous = True

    def __post_init__(self) -> None:
        if self.log and self.bounds is not None and self.bounds[0] <= 0:
            raise InvalidInput(f"bounds: found {self.bounds!r} for a log-normal policy, expected a lowest action > 0")

    def n_params(self, n_features: int) -> int:
        return n_features + (n_features if self.heteroscedastic else int(self.learn_scale))

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return np.zeros(self.n_params(n_features))

    def scores(self, params: Floats, features: Floats) -> Floats:
        """Return μ minus the centre, and log(s / scale), of each row. [n, 2]"""
        theta, omega = self._split(params, features.shape[1])
        of_scale = omega if self.heteroscedastic else np.zeros_like(theta)
        out = _core.project(features.astype(np.float64), np.stack([theta, of_scale]))
        if self.learn_scale and not self.heteroscedastic:
            out[:, 1] = omega[0]
        return out

    def _split(self, params: Floats, width: int) -> tuple[Floats, Floats]:
        return params[:width], params[width:]

    def forward(self, params: Floats, features: Floats, actions: Array) -> tuple[Floats, Pullback]:
        theta, omega = self._split(params, features.shape[1])
        raw = features @ omega if self.heteroscedastic else np.full(len(actions), omega[0] if len(omega) else 0.0)
        log_density, of_mean, of_scale = self.by_scores(np.stack([features @ theta, raw], axis=1), actions)

        def pullback(cotangent: Floats) -> Floats:
            by_scale = cotangent * of_scale
            parts = [(cotangent * of_mean) @ features]
            if self.heteroscedastic:
                parts.append(by_scale @ features)
            elif self.learn_scale:
                parts.append(np.array([by_scale.sum()]))
            return np.concatenate(parts).astype(np.float64)

        return log_density, pullback

    def by_scores(self, scores: Floats, actions: Array) -> tuple[Floats, Floats, Floats]:
        """Return log π(a_s|x_s) and its derivatives by both scores of the row. scores [n, 2]"""
        normal, raw = self._normal(scores), scores[:, 1]
        z = (self._u(actions) - normal.mean) / normal.scale
        at_low, at_high = normal.ends
        of_mean = (z + at_high - at_low) / normal.scale
        of_scale = z**2 - 1 + normal.high * at_high - normal.low * at_low if self.bounds is not None else z**2 - 1
        free = (raw > NARROWEST) & (raw < WIDEST)
        return normal.log_density(z) - (np.log(actions) if self.log else 0.0), of_mean, of_scale * free

    def imitate(self, features: Floats, actions: Floats) -> Floats:
        """Return parameters that fit these actions by least squares: weights are then near 1."""
        X, params = features.astype(np.float64), self.init(features.shape[1])
        u, width = self._u(actions), features.shape[1]
        theta = np.linalg.solve(X.T @ X + 1e-3 * np.eye(width), X.T @ (u - self.centre))
        params[:width] = theta
        spread = float(np.std(u - self.centre - X @ theta))
        if len(params) > width and spread > 0:
            params[width] = min(max(math.log(spread / self.scale), NARROWEST), WIDEST)  # the constant is first
        return params

    def _u(self, actions: Floats) -> Floats:
        return np.log(actions) if self.log else np.asarray(actions)

    def _normal(self, scores: Floats) -> _Normal:
        mean, wide = scores.reshape(-1, 2).T
        scale = self.scale * np.exp(np.clip(wide, NARROWEST, WIDEST))
        bounds = self.bounds if self.bounds is None or not self.log else tuple(math.log(end) for end in self.bounds)
        return _Normal(self.centre + mean, scale, bounds)

    def moments(self, scores: Floats, params: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the action, [n] each."""
        normal = self._normal(scores)
        first, second = (normal.mean_of_exp(k) for k in (1, 2)) if self.log else normal.moments()
        return first, np.sqrt(np.maximum(second - first**2, 0.0))

    def density(self, scores: Floats, params: Floats, actions: Floats) -> Floats:
        """Return the densities of actions; 0 outside the bounds."""
        normal, inside = self._normal(scores), np.ones(len(actions), bool)
        if self.bounds is not None:
            inside = (self.bounds[0] <= actions) & (actions <= self.bounds[1])
        elif self.log:
            inside = actions > 0
        within = np.where(inside, actions, 1.0 if self.bounds is None else self.bounds[0])
        z = (self._u(within) - normal.mean) / normal.scale
        return np.where(inside, np.exp(normal.log_density(z)) / (within if self.log else 1.0), 0.0)

    def sample(self, scores: Floats, params: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        """Draw one action per row of scores from one uniform number each. Returns actions and densities."""
        normal = self._normal(scores)
        u = normal.quantiles(np.clip(uniforms, 1e-16, 1 - 1e-16))
        actions = np.exp(u) if self.log else u
        if self.bounds is not None:
            low, high = self.bounds
            actions = np.clip(actions, np.nextafter(low, high), np.nextafter(high, low))
        return actions, self.density(scores, params, actions)


class _Normal:
    """N(mean, scale²) truncated to `bounds`, row by row. Tails are logarithms: a mean may be far outside the bounds."""

    def __init__(self, mean: Floats, scale: Floats, bounds: Any) -> None:
        self.mean, self.scale, self.bounds = mean, scale, bounds
        self.low = np.full(len(mean), -np.inf) if bounds is None else (bounds[0] - mean) / scale
        self.high = np.full(len(mean), np.inf) if bounds is None else (bounds[1] - mean) / scale
        self.flip = self.low > 0  # then the mirror image is numerically better
        left, right = np.where(self.flip, -self.high, self.low), np.where(self.flip, -self.low, self.high)
        self.log_left, log_right = log_ndtr(left), log_ndtr(right)
        with np.errstate(divide="ignore"):
            self.log_mass = log_right + np.log1p(-np.exp(np.minimum(self.log_left - log_right, 0.0)))

    def log_density(self, z: Floats) -> Floats:
        return np.asarray(-0.5 * z**2 - np.log(self.scale) - LOG_SQRT_2PI - self.log_mass)

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Return φ(α) and φ(β) divided by the mass between the bounds."""
        if self.bounds is None:
            return np.zeros(len(self.mean)), np.zeros(len(self.mean))
        low, high = (np.exp(-0.5 * end**2 - LOG_SQRT_2PI - self.log_mass) for end in (self.low, self.high))
        return low, high

    def quantiles(self, uniforms: Floats) -> Floats:
        share = np.where(self.flip, 1 - uniforms, uniforms)
        z = ndtri_exp(np.minimum(np.logaddexp(self.log_left, np.log(share) + self.log_mass), 0.0))
        return np.asarray(self.mean + self.scale * np.where(self.flip, -z, z))

    def moments(self) -> tuple[Floats, Floats]:
        """Return E[u] and E[u²]."""
        at_low, at_high = self.ends
        first = at_low - at_high  # E[z]
        second = np.ones(len(first))
        if self.bounds is not None:
            second = 1 + self.low * at_low - self.high * at_high
        return (
            self.mean + self.scale * first,
            self.mean**2 + 2 * self.mean * self.scale * first + self.scale**2 * second,
        )

    def mean_of_exp(self, power: int) -> Floats:
        """Return E[e^(power u)]: that of a normal with mean shifted by power s², over the mass between the bounds."""
        moved = _Normal(self.mean + power * self.scale**2, self.scale, self.bounds)
        return np.asarray(np.exp(power * self.mean + (power * self.scale) ** 2 / 2 + moved.log_mass - self.log_mass))
