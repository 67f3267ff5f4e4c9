"""Users and items: a constant, list slot indicators, the user, the item, and the products user × item.

    φ(s, u, x) = (1, 1{s = 1}, …, 1{s ≥ LAST}, ũ, x̃, ũ ⊗ x̃)        ũ, x̃: standardised

Features that are equal for all items of a round cannot distinguish them. They can explain why a round paid; which item
suits which user is in the products only. With weights (…, β, θ, Θ), the score of an item is linear in x̃ for a given
user, f = level + β·ũ + (θ + Θᵀũ)·x̃: a decision costs O(d_user d_item + K d_item).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.errors import InvalidInput
from o2pl.features.standardise import Standardise
from o2pl.protocols import FeatureMap, Floats, State
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

    @property
    def before_items(self) -> int:
        """The number of features that are the same for all items: the head and the user's."""
        return HEAD + self.shared

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
        users, items = (_user_item_directions(state[name]) for name in _DIRECTIONS)
        single = rows.astype(np.float32, copy=False)
        return _core.user_item_rows(
            single, self.shared, HEAD, state["shift"], state["scale"], _SCALE.clip, users, items
        )

    def weights(self, state: State, params: Floats) -> tuple[Floats, Floats]:
        """Return a score's weights: head and (β, θ), [HEAD + d_user + d_item]; and Θ, [d_user, d_item]."""
        users, items = state["users"].astype(np.float64), state["items"].astype(np.float64)
        own = HEAD + users.shape[1] + items.shape[1]
        cross = params[own : own + len(users) * len(items)].reshape(len(users), len(items))
        return params[:own], users.T @ cross @ items


def item_inputs(features: FeatureMap, state: State, inputs: Floats) -> Floats:
    """Return what differs between the items of a round, of rows of inputs of the feature map."""
    rows = inputs
    if isinstance(features, UserItems):
        rows = features.transform(state, inputs)[:, features.before_items :]
    return np.ascontiguousarray(rows, np.float32)


def _user_item_directions(kept: Floats) -> Floats:
    """Return the directions that are multiplied, by column; none if they are the features themselves."""
    return np.ascontiguousarray(kept.T) if len(kept) < kept.shape[1] else np.empty((kept.shape[1], 0), np.float32)
