"""A world of lists: three of four items, drawn slot by slot; exact values by enumeration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.guarantees.worlds import Array, Case
from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions

ITEMS, SLOTS = 4, 3
_LOOKED_AT = np.array([0.9, 0.6, 0.3])  # how likely a slot is looked at
_FEATURES = np.arange(ITEMS, dtype=np.float32)[:, None]


@dataclass(frozen=True)
class ListWorld:
    """n lists. Among the items left π ∝ exp(strength · item); a click needs a look and the item's `quality`."""

    name: str
    says: str
    n: int
    quality: tuple[float, ...]
    logged: float  # strength of the logger, which is the baseline
    strength: float  # of the policy
    doors: tuple[str, ...] = ("evaluate_lists", "evaluate_lists, any time")
    only: bool = True
    equal: bool = False
    reward_range: tuple[float, float] = (0.0, 1.0)

    def case(self, seed: int) -> Case:
        g = np.random.default_rng([seed, self.n])
        left = np.ones((self.n, ITEMS), bool)
        powers, lists = np.exp(self.logged * np.arange(ITEMS)), np.arange(self.n)
        columns = []
        for slot in range(SLOTS):
            p = left * powers
            p /= p.sum(axis=1, keepdims=True)
            items = (p.cumsum(axis=1) < g.random(self.n)[:, None]).sum(axis=1)
            rewards = g.random(self.n) < np.array(self.quality)[items] * _LOOKED_AT[slot]
            columns.append((left.copy(), items, rewards * 1.0, p[lists, items]))
            left[lists, items] = False
        value, base = self._exact(self.strength), self._exact(self.logged)
        log = _interleaved(columns, self.reward_range)
        return Case(
            log, _policy(self.strength), "logged", value, value[-1] - base[-1], lambda policy: 0.0, _policy(0.0)
        )

    def truth(self) -> tuple[float, float]:
        return float(self._exact(self.strength)[-1]), float(self._exact(self.logged)[-1])

    def _exact(self, strength: float) -> Array:
        """The value of each slot, and of the list."""
        powers = np.exp(strength * np.arange(ITEMS))
        values = np.zeros(SLOTS)
        for chosen in itertools.permutations(range(ITEMS), SLOTS):
            left, share = powers.sum(), 1.0
            for item in chosen:
                share *= powers[item] / left
                left -= powers[item]
            values += share * np.array(self.quality)[list(chosen)] * _LOOKED_AT
        return np.append(values, values.mean())


def _policy(strength: float) -> Any:
    def probabilities(sets: ActionSets) -> Array:
        powers = np.exp(strength * sets.values[:, 0].astype(float))
        return np.asarray(powers / np.repeat(np.add.reduceat(powers, sets.offsets[:-1]), sets.sizes))

    return probabilities


def _interleaved(columns: list[tuple[Array, Array, Array, Array]], reward_range: tuple[float, float]) -> Interactions:
    """Return the slots of one list after the other."""
    left = np.stack([one[0] for one in columns], axis=1).reshape(-1, ITEMS)  # [n · slots, items]
    actions, rewards, propensities = (np.stack([one[k] for one in columns], axis=1).ravel() for k in (1, 2, 3))
    n = len(left) // SLOTS
    places = left.cumsum(axis=1)[np.arange(len(left)), actions] - 1  # among the items left
    sizes = left.sum(axis=1)
    sets = ActionSets(
        _FEATURES[np.nonzero(left)[1]], np.concatenate([[0], sizes.cumsum()]), slots=np.tile(np.arange(SLOTS), n)
    )
    return Interactions(sets, places, rewards, propensities, reward_range)
