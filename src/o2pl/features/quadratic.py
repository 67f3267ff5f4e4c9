"""The features and all their pairwise products."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.features.rowwise import products_rowwise
from o2pl.features.standardise import Standardise
from o2pl.protocols import Floats, State
from o2pl.storage import storable

_PRODUCTS = Standardise(clip=math.inf, keep_binary=False)


@storable
@dataclass(frozen=True)
class Quadratic:
    """x and the products x_i x_j, i ≤ j, standardised and scaled so that together they have at most the norm of x.

    With more than `most` inputs, products of `projected` random directions of x are used.
    """

    most: int = 25
    projected: int = 15
    seed: int = 0

    def _factors(self, n_inputs: int) -> int:
        return n_inputs if n_inputs <= self.most else self.projected

    def width(self, n_inputs: int, state: State | None = None) -> int:
        m = self._factors(n_inputs)
        return n_inputs + m * (m + 1) // 2

    def init(self, n_inputs: int) -> State:
        m = self._factors(n_inputs)
        directions = np.eye(n_inputs, dtype=np.float32)
        if m < n_inputs:
            normal = np.random.default_rng(self.seed).normal(size=(m, n_inputs))
            directions = (normal / np.linalg.norm(normal, axis=1, keepdims=True)).astype(np.float32)
        return {"directions": directions, **_PRODUCTS.init(m * (m + 1) // 2)}

    def observe(self, state: State, rows: Floats) -> State:
        moments = {name: array for name, array in state.items() if name != "directions"}
        return {"directions": state["directions"], **_PRODUCTS.observe(moments, self._products(state, rows))}

    def transform(self, state: State, rows: Floats) -> Floats:
        d, factors = rows.shape[1], _quadratic_factors(state, rows)
        made = products_rowwise(factors, state["shift"], quadratic_scale(state, d))
        return made if factors is rows else np.hstack([rows, made[:, factors.shape[1] :]])

    def _products(self, state: State, rows: Floats) -> Floats:
        p, factors = len(state["scale"]), _quadratic_factors(state, rows)
        made = products_rowwise(factors, np.zeros(p, np.float32), np.ones(p, np.float32))
        return np.ascontiguousarray(made[:, factors.shape[1] :])


def quadratic_scale(state: State, n_inputs: int) -> Floats:
    """Return the scale of centred products: together they have at most the norm of the inputs."""
    products = len(state["scale"])
    return np.asarray(state["scale"] * np.float32(min(1.0, math.sqrt(n_inputs / products))))


def _quadratic_factors(state: State, rows: Floats) -> Floats:
    m, d = state["directions"].shape
    return rows if m == d else _core.project(rows, state["directions"])
