"""The worlds: contexts, rewards, a logger, a policy and a baseline, whose values are known."""

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
_TRUTH = 1_000_000  # contexts behind a true value


class Case(NamedTuple):
    """One log of a world, with the truth."""

    log: Interactions
    policy: Any
    baseline: Any
    value: float
    gain: float


@dataclass(frozen=True)
class World:
    """A world of independent rows; `spoil` may damage its log."""

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

    @property
    def equal(self) -> bool:
        """Whether no action matters, so that no policy gains anything."""
        means = self.means(np.random.default_rng(0).normal(size=(100, self.d)).astype(np.float32))
        return bool((np.ptp(means, axis=1) < 1e-9).all())

    def case(self, seed: int) -> Case:
        g = np.random.default_rng([seed, self.n, len(self.name)])
        x = g.normal(size=(self.n, self.d)).astype(np.float32)
        q = self.logger(x)
        actions = drawn(g, q)
        at = (np.arange(self.n), actions)
        rewards = self.draw(g, self.means(x)[at])
        log = Interactions(x, actions, rewards, q[at], self.reward_range, q.shape[1])
        value, base = self.truth()
        return Case(self.spoil(g, log), self.policy, self.baseline, value, value - base)

    def truth(self) -> tuple[float, float]:
        """The values of the policy and of the baseline."""
        return _truth(self)


@cache
def _truth(world: World) -> tuple[float, float]:
    x = np.random.default_rng(12345).normal(size=(_TRUTH, world.d)).astype(np.float32)
    rewards = world.means(x)
    other = world.logger if isinstance(world.baseline, str) else world.baseline
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


# -- the worlds

_FLAT = products(4)
_K3 = always(0.6, 0.3, 0.1)

# ruff: noqa: E501
WORLDS: tuple[World, ...] = (
    World("uniform logger, nothing matters", "binary rewards", 500, 3, by_action(0.3, 0.3, 0.3), always(1, 1, 1), softmax(3, 1.0, 1)),
    World("softmax logger, nothing matters", "binary rewards", 1000, 3, linear(3, 2, 0.0, 0.2), softmax(3, 1.0, 3, 0.1), softmax(3, 1.0, 4)),
    World("wrong reward model", "rewards depend on a product of columns, no action matters", 1500, 4, _FLAT, softmax(4, 1.5, 5, 0.05), softmax(4, 2.0, 6)),
    World("wrong reward model, more rows", "the same", 6000, 4, _FLAT, softmax(4, 1.5, 5, 0.05), softmax(4, 2.0, 6)),
    World("wrong model, graded rewards", "the same, rewards between", 800, 4, _FLAT, softmax(4, 1.0, 7, 0.1), softmax(4, 1.0, 8), draw=graded),
    World("a bad action is hardly explored", "its propensity is .0005, it is worse by .3", 2000, 2, by_action(0.5, 0.5, 0.2), always(0.5, 0.4995, 0.0005), always(0.1, 0.1, 0.8)),
    World("a bad action is never explored somewhere", "propensity 0 where x0 > 1, worth .1 there", 2000, 2,
          lambda x: np.where((x[:, :1] > 1) & (np.arange(3) == 2), 0.0, 0.55 * np.ones((len(x), 3))),
          lambda x: np.where(x[:, :1] > 1, [[0.5, 0.5, 0.0]], [[0.3, 0.3, 0.4]]), always(0, 0, 1)),
    World("hardly explored where it is bad", "propensity .001 where x0 > .5", 3000, 3,
          lambda x: np.where((x[:, :1] > 0.5) & (np.arange(3) == 1), 0.1, 0.55 * np.ones((len(x), 3))),
          lambda x: np.where(x[:, :1] > 0.5, [[0.6, 0.001, 0.399]], [[0.3, 0.4, 0.3]]), always(0, 1, 0)),
    World("rare rewards", ".3 % of rows, three actions", 200, 2, by_action(0.003, 0.003, 0.003), always(1, 1, 1), always(0.1, 0.2, 0.7), baseline=always(0.7, 0.2, 0.1)),
    World("rare rewards, more rows", ".3 % of rows", 3000, 2, by_action(0.003, 0.003, 0.003), always(1, 1, 1), always(0.1, 0.2, 0.7), baseline=always(0.7, 0.2, 0.1)),
    World("rare losses", ".3 % of rows", 200, 2, by_action(0.997, 0.997, 0.997), always(1, 1, 1), always(0.1, 0.2, 0.7)),
    World("rare losses, of the policy only", "its action loses .6 %", 400, 2, by_action(0.999, 0.999, 0.994), _K3, always(0, 0, 1)),
    World("rewards are all 1", "", 300, 2, by_action(1.0, 1.0, 1.0), _K3, always(0.1, 0.3, 0.6)),
    World("rewards are all 0", "", 300, 2, by_action(0.0, 0.0, 0.0), _K3, always(0.1, 0.3, 0.6)),
    World("an effective sample size of 5", "sharp logger and policy", 400, 5, linear(5, 9, 0.0), softmax(5, 1.5, 10, 0.02), softmax(5, 6.0, 11)),
    World("heavy weights", "softmax policies without a floor", 1000, 5, linear(4, 12, 0.0), softmax(4, 1.2, 13), softmax(4, 1.2, 14)),
    World("heavy weights, good surprises rare", "", 2000, 5, lambda x: np.repeat(np.where(x[:, :1] > 1.5, 0.9, 0.05), 4, axis=1), softmax(4, 1.2, 13), softmax(4, 1.2, 14)),
    World("few rows", "40 rows", 40, 2, by_action(0.4, 0.4), always(1, 1), always(0.2, 0.8)),
    World("many actions", "50 actions, 2,000 rows", 2000, 5, linear(50, 15, 0.0, 0.3), softmax(50, 0.5, 16, 0.5), softmax(50, 1.0, 17)),
    World("skewed rewards", "revenue: a fifth of rows earn, few of them much", 1500, 3, by_action(0.02, 0.02, 0.02), always(1, 1, 1), softmax(3, 1.0, 1),
          draw=lambda g, p: (g.random(len(p)) < 0.2) * g.beta(0.5, 0.5 * (0.2 / p - 1))),
    World("nearly the same policy", "differs in 2 % of contexts", 2000, 3, by_action(0.4, 0.4, 0.4), _K3, lambda x: np.where(x[:, :1] > 2, [[0.0, 0.0, 1.0]], [[0.6, 0.3, 0.1]])),
    World("two policies, common noise", "neither is the logger", 1000, 3, linear(3, 18, 0.0), always(1, 1, 1), softmax(3, 1.0, 19), baseline=softmax(3, 1.0, 20)),
    World("worse by .05", "the policy is worse", 2000, 3, by_action(0.5, 0.45), always(1, 1), always(0.0, 1.0), baseline=always(1.0, 0.0)),
    World("unknown reward range", "nothing matters", 800, 3, by_action(0.3, 0.3, 0.3), _K3, softmax(3, 1.0, 1), reward_range=None),
    World("every row twice", "nothing matters", 1000, 3, by_action(0.3, 0.3, 0.3), _K3, softmax(3, 1.0, 1), spoil=repeated(2)),
    World("every row four times", "nothing matters", 500, 3, by_action(0.3, 0.3, 0.3), _K3, softmax(3, 1.0, 1), spoil=repeated(4)),
    World("1s at once, 0s 300 rows late", "nothing matters; the log is cut before the last 0s arrive", 1500, 3, by_action(0.3, 0.3, 0.3), _K3, softmax(3, 1.0, 1), spoil=late_zeros(300)),
    World("deterministic log", "each context has one action, all propensities are 1", 1500, 2, lambda x: np.where(np.arange(2) == 1, 0.3, 0.55 * np.ones((len(x), 2))), signed(2), lambda x: signed(2)(-x)),
)  # fmt: skip

# Worlds with a true gain of three standard errors of DR.
POWER: tuple[World, ...] = (
    World("power: uniform logger", "", 2000, 3, by_action(0.30, 0.37, 0.30), always(1, 1, 1), always(0, 1, 0)),
    World("power: softmax logger", "", 4000, 3, linear(3, 21, 0.2), softmax(3, 0.7, 22, 0.1), softmax(3, 0.7, 21)),
    World("power: many rows", "", 20000, 3, by_action(0.05, 0.058, 0.05), always(1, 1, 1), always(0, 1, 0)),
    World("power: two policies", "", 3000, 3, by_action(0.4, 0.46), always(1, 1), always(0.0, 1.0), baseline=always(1.0, 0.0)),
)  # fmt: skip


def named(name: str) -> World:
    return next(one for one in (*WORLDS, *POWER) if one.name == name)
