"""A real-valued action within bounds: one of K cells by a softmax, then uniform within the cell.

    π(a|x) = p_k(x) K / (high - low)                for a in cell k, of equal width
    π(a|x) = p_k(x) K / (a log(high / low))         with `log`: cells of equal ratio, uniform in log a

The density is exact: nothing is clipped, there are no point masses at the bounds or elsewhere. It may have any shape,
and it integrates to 1 over the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from o2pl import _core
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Pullback
from o2pl.storage import storable
from o2pl.validation import check_count, check_pair


@storable
@dataclass(frozen=True)
class Cells:
    """Softmax over cells. Parameters: W [K, d], flattened: the scores of the cells."""

    bounds: tuple[float, float]
    count: int = 32
    log: bool = False
    continuous = True

    def __post_init__(self) -> None:
        low, _ = check_pair("bounds", self.bounds, "lowest", "highest")
        check_count("cells", self.count)
        if self.log and low <= 0:
            raise InvalidInput(f'bounds: found {self.bounds!r} with spacing="log", expected a lowest action > 0')

    @cached_property
    def numbers(self) -> Floats:
        """The numbers for kernels: low, high, and log(high / low), or 0."""
        low, high = self.bounds
        return np.array([low, high, math.log(high / low) if self.log else 0.0])

    def place(self, actions: Floats) -> Floats:
        """Return the relative positions of actions between the bounds, in [0, 1]."""
        return _core.places_of(np.ravel(actions), self.numbers).reshape(np.shape(actions))

    def actions(self, places: Floats) -> Floats:
        """Return the actions at these relative positions, in (low, high)."""
        return _core.actions_at(np.ravel(places), self.numbers).reshape(np.shape(places))

    def width(self, actions: Floats) -> Floats:
        """Return the width da of each action's cell: its density is p_k / da."""
        low, high = self.bounds
        return np.asarray(actions * math.log(high / low) if self.log else np.full(np.shape(actions), high - low)) / (
            self.count
        )

    def n_params(self, n_features: int) -> int:
        return self.count * n_features

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return np.zeros(self.n_params(n_features))

    def forward(self, params: Floats, features: Floats, actions: Array) -> tuple[Floats, Pullback]:
        """Return log π(a_s|x_s), [n], and its pullback."""
        W = params.reshape(self.count, -1)
        scores = features @ W.T
        scores -= scores.max(axis=1, keepdims=True)
        log_pi = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        played = (np.arange(len(actions)), self.cell(actions))

        def pullback(cotangent: Floats) -> Floats:
            pulled = -np.exp(log_pi) * cotangent[:, None]
            pulled[played] += cotangent
            return np.asarray(pulled.T @ features, np.float64).reshape(-1)

        return log_pi[played] - np.log(self.width(actions)), pullback

    def scores(self, params: Floats, features: Floats) -> Floats:
        """Return the scores of the cells, [n, K]."""
        W = params.reshape(self.count, -1)
        return _core.project(features.astype(np.float64), W)

    def cell(self, actions: Floats) -> Array:
        return np.clip((self.place(actions) * self.count).astype(np.int64), 0, self.count - 1)

    def moments(self, probabilities: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the action from the probabilities of the cells. [n, K] -> [n], [n]"""
        edges = self.actions(np.arange(self.count + 1) / self.count)
        low, high = edges[:-1], edges[1:]
        first, second = (low + high) / 2, (low**2 + low * high + high**2) / 3
        if self.log:  # da / a within a cell: E[a] = Δa / Δ log a, E[a²] = Δa² / 2 Δ log a
            logs = np.diff(np.log(edges))
            first, second = np.diff(edges) / logs, np.diff(edges**2) / (2 * logs)
        mean = probabilities @ first
        return mean, np.sqrt(np.maximum(probabilities @ second - mean**2, 0.0))

    def density(self, probabilities: Floats, actions: Floats) -> Floats:
        """Return the density of actions from the cells' probabilities; 0 outside the bounds. [n, K], [n] -> [n]"""
        low, high = self.bounds
        inside = (low <= actions) & (actions <= high)
        within = np.where(inside, actions, low)
        played = probabilities[np.arange(len(actions)), self.cell(within)]
        return np.where(inside, played / self.width(within), 0.0)

    def draw(self, probabilities: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        """Draw one action per row from one uniform number each. Returns actions and densities. [n, K], [n]"""
        return _core.draw_numbers(probabilities, uniforms, self.numbers)
