"""Finite policy classes: a table of policies, and floored thresholds.

The parameters of a finite class are log weights of a mixture of its J members (its convex hull, with scores and
pullback like any other policy). The class itself is the hull's vertices; `vertex(j)` is member j alone. The exhaustive
oracle searches the vertices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from o2pl import _core
from o2pl.protocols import Array, Floats, Ints, Pullback
from o2pl.storage import storable


class FinitePolicies(ABC):
    """Base class of the finite classes; subclasses define the likelihoods of their members."""

    n_actions: int
    continuous = False

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of members J."""

    @abstractmethod
    def likelihoods(self, features: Floats, actions: Ints) -> Floats:
        """Return π_j(a_s|x_s) of every member, [n, J]."""

    def n_params(self, n_features: int) -> int:
        return self.size

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return np.zeros(self.size)

    def vertex(self, member: int) -> Floats:
        params = np.full(self.size, -np.inf)
        params[member] = 0
        return params

    def all_likelihoods(self, features: Floats) -> Floats:
        """Return π_j(a|x_s) of every action under every member, [n, K, J]."""
        n = len(features)
        columns = [self.likelihoods(features, np.full(n, a)) for a in range(self.n_actions)]
        return np.stack(columns, axis=1)

    def forward(self, params: Floats, features: Floats, actions: Array) -> tuple[Floats, Pullback]:
        L, weights = self.all_likelihoods(features), _finite_mixture_weights(params)
        mixed: Floats = L @ weights  # [n, K]

        def pullback(cotangent: Floats) -> Floats:
            # ∂ log Σ_j ω_j L_j / ∂ log-weight_j = ω_j (L_j / mixed - 1)
            shares = np.tensordot(cotangent / mixed, L, axes=2)
            return np.asarray(weights * (shares - cotangent.sum()))

        return _finite_log(mixed), pullback

    def scores(self, params: Floats, features: Floats) -> Floats:
        likely = params > -np.inf
        if likely.sum() == 1:  # a single member
            return _finite_log(self.member(features, int(np.argmax(likely))))
        L = self.all_likelihoods(features)
        mixed = _core.project(L.reshape(-1, self.size), _finite_mixture_weights(params)[None])
        return _finite_log(mixed.reshape(len(L), self.n_actions))

    def member(self, features: Floats, j: int) -> Floats:
        """Return π_j(a|x_s) of every action under one member, [n, K]."""
        return np.asarray(self.all_likelihoods(features)[:, :, j])


def _finite_log(probabilities: Floats) -> Floats:
    return _core.log_of(probabilities.reshape(-1)).reshape(probabilities.shape)  # log 0 = -∞: never taken


def _finite_mixture_weights(params: Floats) -> Floats:
    weights = np.exp(params - params.max())
    return np.asarray(weights / weights.sum())


@storable
@dataclass(frozen=True, eq=False)
class FiniteClass(FinitePolicies):
    """Policies as a table [J, C, K]: member, context number (the only feature), action. [J, K] for a single context."""

    table: Floats

    def __post_init__(self) -> None:
        table = np.asarray(self.table, np.float64)
        table = table[:, None, :] if table.ndim == 2 else table
        if table.ndim != 3 or (table < 0).any() or not np.allclose(table.sum(axis=2), 1):
            raise ValueError(
                f"table: found shape {table.shape}, smallest entry {table.min()}; expected [members, contexts, actions]"
                " with non-negative entries that sum to 1 over the actions"
            )
        object.__setattr__(self, "table", table)

    @property
    def n_actions(self) -> int:  # type: ignore[override]  # a plain attribute of the base, computed here
        return int(self.table.shape[2])

    @property
    def size(self) -> int:
        return len(self.table)

    def likelihoods(self, features: Floats, actions: Ints) -> Floats:
        numbers = features[:, 0].astype(np.int64)
        if not np.array_equal(numbers, features[:, 0]) or (numbers < 0).any() or (numbers >= self.table.shape[1]).any():
            raise ValueError(f"contexts of a finite class: expected integers from 0 to {self.table.shape[1] - 1}")
        return np.asarray(self.table[:, numbers, actions].T)


@storable
@dataclass(frozen=True)
class ThresholdClass(FinitePolicies):
    """π_j plays action 1 with probability 1 - floor where x > thresholds[j] and with probability floor elsewhere."""

    thresholds: tuple[float, ...]
    floor: float = 0.05
    n_actions = 2

    def __post_init__(self) -> None:
        if not 0 < self.floor < 0.5:
            raise ValueError(f"floor: found {self.floor}, expected a number in (0, 1/2)")

    @property
    def size(self) -> int:
        return len(self.thresholds)

    def likelihoods(self, features: Floats, actions: Ints) -> Floats:
        above = features[:, :1] > np.asarray(self.thresholds)[None]
        agrees = above == (np.asarray(actions)[:, None] == 1)
        return np.where(agrees, 1 - self.floor, self.floor)

    def member(self, features: Floats, j: int) -> Floats:
        second = np.where(features[:, 0] > self.thresholds[j], 1 - self.floor, self.floor)
        return np.stack([np.where(features[:, 0] > self.thresholds[j], self.floor, 1 - self.floor), second], axis=1)
