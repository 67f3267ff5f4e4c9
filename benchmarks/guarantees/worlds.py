"""Worlds: contexts, rewards, a logger, a policy and a baseline, whose values are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from o2pl.data.interactions import Interactions

Array = NDArray[Any]
Table = Callable[[Array], Array]  # contexts [n, d] -> [n, K]
Draw = Callable[[np.random.Generator, Array], Array]  # expected rewards [n] -> rewards [n]
_TRUTH, _FRESH = 1_000_000, 20_000  # contexts behind a true value, and behind that of what was learned


class Case(NamedTuple):
    """One log of a world, with the truth."""

    log: Any
    policy: Any
    baseline: Any
    value: Any
    gain: float
    gain_of: Callable[[Table], float]  # over the logger, of any policy
    logger: Table


@dataclass(frozen=True)
class World:
    """A world of independent rows; from row `change` on it is that of `later`. `spoil` may damage its log."""

    name: str
    says: str
    n: int
    d: int
    means: Table
    logger: Table
    policy: Table
    baseline: Table | str = "logged"
    draw: Draw = lambda g, p: np.asarray((g.random(len(p)) < p) * 1.0)
    reward_range: tuple[float, float] | None = (0.0, 1.0)
    spoil: Callable[[np.random.Generator, Interactions], Interactions] = lambda g, log: log
    doors: tuple[str, ...] = ()  # besides those of every world, or only these
    only: bool = False
    change: int = 0
    later: tuple[Table, Table] | None = None  # means and logger

    @property
    def equal(self) -> bool:
        """Whether no action matters, so that no policy gains anything."""
        means = self.means(np.random.default_rng(0).normal(size=(100, self.d)).astype(np.float32))
        return self.later is None and bool((np.ptp(means, axis=1) < 1e-9).all())

    def case(self, seed: int) -> Case:
        g = np.random.default_rng([seed, self.n, len(self.name)])
        x = g.normal(size=(self.n, self.d)).astype(np.float32)
        q, means = self._in_time(x, 1), self._in_time(x, 0)
        actions = drawn(g, q)
        at = (np.arange(self.n), actions)
        rewards = self.draw(g, means[at])
        log = Interactions(x, actions, rewards, q[at], self.reward_range, q.shape[1])
        value, base = self.truth()
        return Case(self.spoil(g, log), self.policy, self.baseline, value, value - base, self.gain_of, self.logger)

    def _in_time(self, x: Array, which: int) -> Array:
        """Return the means, or the logger's probabilities, of rows in order."""
        table = (self.means, self.logger)[which](x)
        if self.later is not None:
            table = np.concatenate([table[: self.change], self.later[which](x[self.change :])])
        return table

    def truth(self) -> tuple[float, float]:
        """The values of the policy and of the baseline, over the rows of a log."""
        value, base = _truth(self, self.means, self.logger)
        if self.later is None:
            return value, base
        share, (later, other) = self.change / self.n, _truth(self, *self.later)
        return share * value + (1 - share) * later, share * base + (1 - share) * other

    def gain_of(self, policy: Table) -> float:
        x = np.random.default_rng(54321).normal(size=(_FRESH, self.d)).astype(np.float32)
        return 0.0 if self.equal else float(((policy(x) - self.logger(x)) * self.means(x)).sum(1).mean())


@cache
def _truth(world: World, means: Table, logger: Table) -> tuple[float, float]:
    x = np.random.default_rng(12345).normal(size=(_TRUTH, world.d)).astype(np.float32)
    rewards = means(x)
    other = logger if isinstance(world.baseline, str) else world.baseline
    return float((world.policy(x) * rewards).sum(1).mean()), float((other(x) * rewards).sum(1).mean())


def drawn(g: np.random.Generator, q: Array) -> Array:
    return np.asarray(np.minimum((q.cumsum(axis=1) < g.random(len(q))[:, None]).sum(axis=1), q.shape[1] - 1))


# -- parts of worlds


def softmax(k: int, sharp: float, seed: int, floor: float = 0.0) -> Table:
    """A softmax of linear scores, mixed with the uniform policy."""
    weights = np.random.default_rng(seed).normal(size=(64, k))

    def table(x: Array) -> Array:
        scores = sharp * x @ weights[: x.shape[1]]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray((1 - floor) * shares / shares.sum(axis=1, keepdims=True) + floor / k)

    return table


def always(*probabilities: float) -> Table:
    given = np.array(probabilities) / sum(probabilities)
    return lambda x: np.asarray(np.tile(given, (len(x), 1)))


def signed(k: int, sharp: float = 1.0) -> Table:
    """The second action where x0 > 0, the first elsewhere, as far as `sharp` (1: always)."""

    def table(x: Array) -> Array:
        share = np.full((len(x), k), (1 - sharp) / max(k - 1, 1))
        share[np.arange(len(x)), (x[:, 0] > 0) * 1] = sharp
        return share

    return table


def excluding(k: int, table: Table) -> Table:
    """One action of k is excluded in every row, any of them."""

    def made(x: Array) -> Array:
        shares = np.array(table(x))
        shares[np.arange(len(x)), (np.abs(x[:, 0]) * 1e4).astype(np.int64) % k] = 0.0
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    return made


def by_action(*means: float) -> Table:
    return lambda x: np.tile(np.array(means), (len(x), 1))


def products(k: int, low: float = 0.1, high: float = 0.9) -> Table:
    """The same for all actions, and far from linear: which sign x0 x1 has."""
    return lambda x: np.repeat(np.where(x[:, 0] * x[:, -1] > 0, high, low)[:, None], k, axis=1)


def linear(k: int, seed: int, spread: float, centre: float = 0.5) -> Table:
    weights = np.random.default_rng(seed).normal(size=(64, k))
    return lambda x: np.clip(centre + spread * np.tanh(x @ weights[: x.shape[1]] / x.shape[1] ** 0.5), 0.0, 1.0)


def exclusive(low: float, high: float) -> Table:
    """Two actions; the second is right where x0 x1 > 0."""

    def table(x: Array) -> Array:
        right = (x[:, 0] * x[:, 1] > 0) * 1
        return np.where(np.arange(2) == right[:, None], high, low)

    return table


def repeated(times: int) -> Callable[[np.random.Generator, Interactions], Interactions]:
    return lambda g, log: log[np.repeat(np.arange(len(log)), times)]


def late_zeros(rows: int) -> Callable[[np.random.Generator, Interactions], Interactions]:
    """Rows in the order in which their rewards arrive: 1s at once, 0s so many rows late; the last are missing."""

    def spoil(g: np.random.Generator, log: Interactions) -> Interactions:
        at = np.arange(len(log)) + rows * (log.rewards == 0)
        order = np.argsort(at, kind="stable")
        return log[order[at[order] < len(log)]]

    return spoil


def graded(g: np.random.Generator, p: Array) -> Array:
    return g.beta(4 * p + 0.05, 4 * (1 - p) + 0.05)


def failing(share: float, of: float = 1.0) -> Draw:
    """Rewards near their means; where these are at most `of`, a share of the rows earns nothing."""

    def draw(g: np.random.Generator, p: Array) -> Array:
        fails = p <= of
        near = np.clip(np.where(fails, p / (1 - share), p) + 0.02 * (g.random(len(p)) - 0.5), 0.0, 1.0)
        return np.where(fails & (g.random(len(p)) < share), 0.0, near)

    return draw
