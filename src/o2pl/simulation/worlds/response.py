"""Worlds with a real-valued action between bounds and different response curves: prices, doses, settings.

    demand      price a, sold with probability σ((v(x) - a) / 1.2): the reward is the price, or nothing
    convex      reward 1 - ((a - t(x)) / 5)² and noise of .1
    two-peaks   reward 1 or 0, likely near a = 2 or near a = 8, depending on the context
    skewed      price a, customers' valuations are log-normal with median e^2.2 times e^(.6 x₁ - .4 x₂)
    dose        benefit that levels off, harm that grows, both depending on the context, and noise of .3

The expected reward of an action is exact. The best action of a round is found by search, to 1e-4 of the bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from o2pl.protocols import Floats, Ints
from o2pl.simulation.worlds.moments import moment_normal_probability, moment_of_clipped
from o2pl.simulation.worlds.rounds import check_rounds, require_for_rounds
from o2pl.storage import storable

Limits = tuple[float, float]
_ZOOM, _PLACES = 4, 65  # refinements of the search for the best action, and actions per refinement


class ResponseKind(NamedTuple):
    """A response. level(index, a): probability of a sale or success, or the mean without noise. Index [n] or [n, m]"""

    bounds: Limits
    reward_range: Limits
    features: int
    indexed: Callable[[Floats], Floats]
    level: Callable[[Floats, Floats], Floats]
    pays: str | float  # "price" (or nothing), "one" (or nothing), or the standard deviation of normal noise
    even: bool = False  # contexts uniform on [-1, 1] instead of normal


def _logistic_response(z: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-z)))


def _response_peaks(share: Floats, a: Floats) -> Floats:
    return np.asarray(0.1 + 0.7 * (share * np.exp(-((a - 2) ** 2)) + (1 - share) * np.exp(-((a - 8) ** 2))))


def _dose_response_index(x: Floats) -> Floats:
    return np.stack([np.exp(0.8 + 0.7 * x[:, 0] - 0.5 * x[:, 1]), 0.3 + 1.2 * _logistic_response(2 * x[:, 2])], axis=1)


def _dose_response(index: Floats, a: Floats) -> Floats:
    half, harm = index[..., 0], index[..., 1]
    return np.asarray(1.2 * a**2 / (half**2 + a**2) - harm * (a / 10) ** 1.5)


KINDS: dict[str, ResponseKind] = {
    "demand": ResponseKind(
        (5.0, 20.0), (0.0, 20.0), 5, lambda x: 11 + 2 * x[:, 0] + 1.5 * x[:, 1],
        lambda v, a: _logistic_response((v - a) / 1.2), "price",
    ),
    "convex": ResponseKind(
        (0.0, 10.0), (0.0, 1.0), 4, lambda x: 5 + 3 * x[:, 0] - 1.5 * x[:, 1],
        lambda t, a: 1 - ((a - t) / 5) ** 2, 0.1, even=True,
    ),
    "two-peaks": ResponseKind(
        (0.0, 10.0), (0.0, 1.0), 4, lambda x: _logistic_response(3 * x[:, 0]), _response_peaks, "one"
    ),
    "skewed": ResponseKind(
        (1.0, 60.0), (0.0, 60.0), 5, lambda x: 2.2 + 0.6 * x[:, 0] - 0.4 * x[:, 1],
        lambda m, a: moment_normal_probability((m - np.log(a)) / 0.4), "price",
    ),
    "dose": ResponseKind((0.0, 10.0), (-1.0, 1.5), 6, _dose_response_index, _dose_response, 0.3),
}  # fmt: skip


@storable
@dataclass(frozen=True)
class Response:
    """A world with one of `KINDS`, by name."""

    kind: str = "demand"
    n_actions = None

    def __post_init__(self) -> None:
        require_for_rounds(self.kind in KINDS, "kind", self.kind, f"one of {sorted(KINDS)}")

    @property
    def bounds(self) -> Limits:
        return KINDS[self.kind].bounds

    @property
    def reward_range(self) -> Limits:
        return KINDS[self.kind].reward_range

    def sample(self, rounds: int, generator: np.random.Generator) -> ResponseRounds:
        kind, shape = KINDS[self.kind], (check_rounds(rounds), KINDS[self.kind].features)
        contexts = generator.uniform(-1, 1, shape) if kind.even else generator.standard_normal(shape)
        contexts = contexts.astype(np.float32)
        chance = generator.random(rounds) if isinstance(kind.pays, str) else generator.standard_normal(rounds)
        return ResponseRounds(kind, contexts, kind.indexed(contexts.astype(np.float64)), chance)


@dataclass(frozen=True, eq=False)
class ResponseRounds:
    """Rounds of a `Response`."""

    kind: ResponseKind
    contexts: Floats  # [n, d], float32
    index: Floats  # [n] or [n, m]
    chance: Floats  # [n], uniform or normal

    def __len__(self) -> int:
        return len(self.contexts)

    def rewards(self, rows: Ints, actions: Floats) -> Floats:
        a, pays = np.asarray(actions, np.float64), self.kind.pays
        level = self.kind.level(self.index[rows], a)
        if isinstance(pays, str):
            return np.where(self.chance[rows] < level, a if pays == "price" else 1.0, 0.0)
        return np.clip(level + pays * self.chance[rows], *self.kind.reward_range)

    def expected(self, rows: Ints, actions: Floats) -> Floats:
        """Return the exact mean rewards, [m]."""
        a, pays = np.asarray(actions, np.float64), self.kind.pays
        level = self.kind.level(self.index[rows], a)
        if isinstance(pays, str):
            return np.asarray(level * a if pays == "price" else level)
        return np.asarray(moment_of_clipped(level, pays, *self.kind.reward_range))

    @property
    def best(self) -> Floats:
        """Return the expected reward of the best action of each round, [n]."""
        rows = np.arange(len(self))
        low, high = (np.full(len(self), end) for end in self.kind.bounds)
        for _ in range(_ZOOM):
            places = np.linspace(low, high, _PLACES)
            values = np.stack([self.expected(rows, place) for place in places])
            middle, step = places[values.argmax(axis=0), rows], (high - low) / (_PLACES - 1)
            low, high = np.maximum(middle - step, self.kind.bounds[0]), np.minimum(middle + step, self.kind.bounds[1])
        return self.expected(rows, (low + high) / 2)

    @property
    def best_constant(self) -> float:
        """Return the mean expected reward of the best constant action."""
        rows = np.arange(len(self))
        return max(
            float(self.expected(rows, np.full(len(self), a)).mean()) for a in np.linspace(*self.kind.bounds, 201)
        )


RESPONSES: dict[str, Response] = {name: Response(name) for name in KINDS}
