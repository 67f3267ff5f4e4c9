"""Users and items: a constant, list slot indicators, the user, the item, and the products user × item.

    φ(s, u, x) = (1, 1{s = 1}, …, 1{s ≥ LAST}, ũ, x̃, ũ ⊗ x̃)        ũ, x̃: standardised

Features that are equal for all items of a round cannot distinguish them. They can explain why a round paid; which item
suits which user is in the products only. With weights (…, β, θ, Θ), the score of an item is linear in x̃ for a given
user, f = level + β·ũ + (θ + Θᵀũ)·x̃: a decision costs O(d_user d_item + K d_item).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl.compiled import compiled
from o2pl.errors import InvalidInput
from o2pl.features.basic import project
from o2pl.features.standardise import Standardise
from o2pl.protocols import Floats, State
from o2pl.storage import storable

LAST = 7  # last list slot with its own intercept, from 0; later slots share it
HEAD = 1 + LAST  # the constant and the slot indicators
_SCALE = Standardise()
_DIRECTIONS = ("users", "items")


@storable
@dataclass(frozen=True)
class UserItems:
    """Features of rows (list slot, user, item); `shared`: number of user features.

    With more than `most` products, random directions of the user, of the item or of both are multiplied.
    """

    shared: int = 0
    most: int = 1024
    seed: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.shared, int | np.integer) and self.shared >= 0):
            raise InvalidInput(f"shared: found {self.shared!r}, expected an integer from 0")
        if not (isinstance(self.most, int | np.integer) and self.most >= 1):
            raise InvalidInput(f"most: found {self.most!r}, expected an integer from 1")

    def factors(self, n_inputs: int) -> tuple[int, int]:
        """Return how many directions of users and of items are multiplied."""
        users, items = self.shared, n_inputs - 1 - self.shared
        if users * items <= self.most:
            return users, items
        side = int(self.most**0.5)
        users = min(users, max(side, self.most // items))
        return users, min(items, self.most // users)

    def width(self, n_inputs: int, state: State | None = None) -> int:
        users, items = self.factors(n_inputs)
        return HEAD + n_inputs - 1 + users * items

    def init(self, n_inputs: int) -> State:
        sizes = self.shared, n_inputs - 1 - self.shared
        generator, state = np.random.default_rng(self.seed), dict(_SCALE.init(n_inputs - 1))
        for name, size, kept in zip(_DIRECTIONS, sizes, self.factors(n_inputs), strict=True):
            directions = np.eye(size)
            if kept < size:
                normal = generator.normal(size=(kept, size))
                directions = normal / np.linalg.norm(normal, axis=1, keepdims=True)
            state[name] = directions.astype(np.float32)
        return state

    def observe(self, state: State, rows: Floats) -> State:
        kept = {name: state[name] for name in _DIRECTIONS}
        moments = {name: array for name, array in state.items() if name not in kept}
        return {**_SCALE.observe(moments, rows[:, 1:]), **kept}

    def transform(self, state: State, rows: Floats) -> Floats:
        d, users, items = self.shared, state["users"], state["items"]
        out = np.zeros((len(rows), self.width(rows.shape[1])), np.float32)
        inputs = _SCALE.transform(state, np.ascontiguousarray(rows[:, 1:], np.float32))
        levels(rows[:, 0], out)
        out[:, HEAD : HEAD + inputs.shape[1]] = inputs
        user, item = inputs[:, :d], inputs[:, d:]
        if len(users) < d:
            user = project(np.ascontiguousarray(user), users, np.zeros(len(users), np.float32))
        if len(items) < item.shape[1]:
            item = project(np.ascontiguousarray(item), items, np.zeros(len(items), np.float32))
        products(np.ascontiguousarray(user), np.ascontiguousarray(item), out[:, HEAD + inputs.shape[1] :])
        return out

    def weights(self, state: State, params: Floats) -> tuple[Floats, Floats]:
        """Return a score's weights: head and (β, θ), [HEAD + d_user + d_item]; and Θ, [d_user, d_item]."""
        users, items = state["users"].astype(np.float64), state["items"].astype(np.float64)
        own = HEAD + users.shape[1] + items.shape[1]
        cross = params[own : own + len(users) * len(items)].reshape(len(users), len(items))
        return params[:own], users.T @ cross @ items


@compiled
def levels(places: Floats, out: Floats) -> None:
    """Write the constant and the slot indicator. out [n, ≥ HEAD], initially zeros"""
    for r in range(len(out)):
        out[r, 0] = 1
        place = min(int(places[r]), LAST)
        if place > 0:
            out[r, place] = 1


@compiled
def products(users: Floats, items: Floats, out: Floats) -> None:
    """Compute the products. users [n, a], items [n, b] -> out [n, a b]"""
    n, a = users.shape
    b = items.shape[1]
    for r in range(n):
        for i in range(a):
            for j in range(b):
                out[r, i * b + j] = users[r, i] * items[r, j]
