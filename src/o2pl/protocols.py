"""The shapes that the parts of o2pl have, on one page.

n rows, d features, K actions. A *policy* knows how likely an action is and how that depends on its parameters; an
*objective* knows how good given importance weights are; an *oracle* knows how to minimise. None knows the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
State = Mapping[str, Array]  # what a feature map has seen
Pullback = Callable[[Floats], Floats]  # cotangent c, shaped like log π  ->  Σ c ∇ log π, shaped like the parameters
ValueAndGradient = Callable[[Floats], tuple[float, Floats]]


class Solution(NamedTuple):
    """What an oracle returns."""

    params: Floats
    value: float
    converged: bool
    evaluations: int


class FeatureMap(Protocol):
    """Contexts to features. What it learns from the contexts it has seen is a value of its own, the state."""

    def width(self, n_inputs: int) -> int: ...  # features per row
    def init(self, n_inputs: int) -> State: ...
    def observe(self, state: State, rows: Floats) -> State: ...  # a new state; the old one stays as it was
    def transform(self, state: State, rows: Floats) -> Floats: ...  # [n, n_inputs] -> [n, width]


class Policy(Protocol):
    """π(a|x), as its logarithm and the pullback of that logarithm."""

    def n_params(self, n_features: int) -> int: ...
    def init(self, n_features: int) -> Floats: ...
    def forward(self, params: Floats, features: Any, actions: Array | None = None) -> tuple[Floats, Pullback]:
        """Log π(a_s|x_s), [n]; without actions (discrete policies) all of log π(·|x_s), [n, K]. And its pullback."""

    def sample(self, params: Floats, features: Any, uniforms: Floats) -> tuple[Array, Floats]:
        """One action per row from one uniform number per row, and the probability (or density) of each."""


class Penalty(Protocol):
    """Pessimism as a function of the variance proxy: its value and its slope d value / d variance."""

    def __call__(self, variance: float) -> tuple[float, float]: ...


class Oracle(Protocol):
    """Minimises a function from its value and gradient."""

    def __call__(self, function: ValueAndGradient, start: Floats) -> Solution: ...


class Learner(Protocol):
    """What decides and learns, one interaction at a time."""

    def act(self, context: Any) -> Any: ...  # a Decision
    def update(self, context: Any, action: Any, reward: float, propensity: float) -> Any: ...


class Rounds(Protocol):
    """A stretch of a world with all its chance settled in advance: any action's reward can be asked for.

    Learners that are run on the same rounds see the same contexts and the same noise.
    """

    @property
    def contexts(self) -> Floats: ...  # [n, d]
    def rewards(self, rows: Ints, actions: Array) -> Floats: ...  # what `actions` bring in rounds `rows`, [m]
    def expected(self, rows: Ints, actions: Array) -> Floats: ...  # the exact mean of that, [m]
    @property
    def best(self) -> Floats: ...  # the expected reward of the best action of each round, [n]


class Environment(Protocol):
    """A world to act in. n_actions is None where actions are real numbers."""

    @property
    def n_actions(self) -> int | None: ...
    @property
    def reward_range(self) -> tuple[float, float]: ...
    def sample(self, rounds: int, generator: np.random.Generator) -> Rounds: ...
