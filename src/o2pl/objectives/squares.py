"""The least squares objective, for rewards that are a smooth function of a real-valued action.

    V = mean ½ (r - f(x, a))² + l2 |θ|² / 2n,   r ∈ [0, 1] the reward as a fraction of its range

Propensities do not enter. It is the likelihood of normal noise. `oracles.recursive` computes its minimum in closed
form, and its uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.protocols import Array, Floats, Ints
from o2pl.storage import storable
from o2pl.validation import check_number


@storable
@dataclass(frozen=True)
class LeastSquares:
    """Least squares, for policies whose `forward` is the expected reward of the played action, such as `Curve`."""

    l2: float = 1.0
    extra = 0

    def __post_init__(self) -> None:
        check_number("l2", self.l2, 0, open_low=True)

    def rate(self, n: int) -> float:
        return 1.0

    def prepare(self, rows: Interactions, control: object = None, weights: Floats | None = None) -> SquaresLog:
        return SquaresLog(rows.actions, -rows.losses, self.l2, weights)


@dataclass(frozen=True, eq=False)
class SquaresLog:
    """A log prepared for the objective: everything that is constant while the policy changes."""

    actions: Array
    rewards: Floats  # fractions of their range, in [0, 1]
    l2: float
    weights: Floats | None = None  # of the rows; None: equal
    negligible = 0.0

    @cached_property
    def size(self) -> float:
        return float(len(self.actions) if self.weights is None else self.weights.sum())

    def started(self, params: Floats) -> Floats:
        return params

    def partial(self, scores: Floats, rows: slice | Ints, extra: Floats) -> tuple[Floats, list[Floats]]:
        weigh: Any = 1.0 if self.weights is None else self.weights[rows]
        off = scores - self.rewards[rows]
        return np.array([np.sum(weigh * off**2) / 2]), [weigh * off]

    def combine(self, params: Floats, sums: Floats, gradients: Sequence[Floats]) -> tuple[float, Floats]:
        shrink = self.l2 / self.size
        return float(sums[0]) / self.size + 0.5 * shrink * float(params @ params), (
            gradients[0] / self.size + shrink * params
        )
