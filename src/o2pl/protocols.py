"""The parts that o2pl is put together from, on one page.

n rows, d features, K actions, D parameters. A *feature map* makes rows of features of contexts. A *policy* gives scores
to actions. An *objective* says how good scores are, as sums over rows that one combination puts together. An *oracle*
minimises. A *schedule* says when to learn, and from which rows. An *exploration* rule says what is mixed in when
acting. None knows the others; `learners.engine` joins them. `kernels` holds faster versions of some combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Seed = int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None  # what numpy makes generators of
State = Mapping[str, Array]  # what a part has seen or keeps: saved and restored as it is
Pullback = Callable[
    [Floats], Floats
]  # cotangent c, shaped like the scores  ->  Σ c ∇ scores, shaped like the parameters
ValueAndGradient = Callable[[Floats], tuple[float, Floats]]


class FeatureMap(Protocol):
    """Contexts to features. What it learns from the contexts it has seen is a value of its own, the state."""

    def width(self, n_inputs: int, state: State | None = None) -> int: ...  # features per row; may grow with the state
    def init(self, n_inputs: int) -> State: ...
    def observe(self, state: State, rows: Any) -> State: ...  # a new state; the old one stays as it was
    def transform(self, state: State, rows: Any) -> Any: ...  # [n, n_inputs] -> [n, width]


class Policy(Protocol):
    """π(a|x). A discrete policy is its scores, log π being their log-softmax; a continuous one is its log density."""

    @property
    def continuous(self) -> bool: ...
    def n_params(self, n_features: int) -> int: ...
    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats: ...
    def forward(self, params: Floats, features: Any, actions: Array) -> tuple[Floats, Pullback]:
        """Scores and their pullback: [n, K], flat [total] for action sets; continuous: log π(a_s|x_s), [n]."""

    def scores(self, params: Floats, features: Any) -> Floats:
        """What acting needs, in double precision; a row's result does not depend on the rows beside it."""


class DiscretePolicy(Policy, Protocol):
    """One that chooses among actions: its scores are all that acting needs."""


class ContinuousPolicy(Policy, Protocol):
    """One whose actions are real numbers, drawn around its scores."""

    def imitate(self, features: Floats, actions: Floats) -> Floats: ...  # parameters near a logger's, to start from
    def moments(self, scores: Floats, params: Floats) -> tuple[Floats, Floats]: ...  # mean and deviation, [n] each
    def density(self, scores: Floats, params: Floats, actions: Floats) -> Floats: ...  # [n]
    def sample(self, scores: Floats, params: Floats, uniforms: Floats) -> tuple[Floats, Floats]: ...


class Objective(Protocol):
    """How good a policy is on a log."""

    @property
    def extra(self) -> int: ...  # parameters of its own, after the policy's
    def rate(self, n: int) -> float: ...  # of the weights of a union's members, after n rows
    def prepare(  # a PreparedLog; totals: of the whole log, where these rows are a part of it
        self, rows: Any, control: Any = None, weights: Floats | None = None, totals: Any = None
    ) -> Any: ...


class PreparedLog(Protocol):
    """A log with all that stays fixed while parameters change."""

    @property
    def actions(self) -> Array: ...
    @property
    def negligible(self) -> float: ...  # what a solve may leave of the value
    def started(self, params: Floats) -> Floats: ...  # to solve from
    def partial(self, scores: Floats, rows: slice | Ints, extra: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Sums over these rows, and the cotangents of the scores whose pullbacks `combine` wants."""

    def combine(self, params: Floats, sums: Floats, gradients: Sequence[Floats]) -> tuple[float, Floats]:
        """The objective and its gradient from the sums over all rows. What is no sum over rows (Φ) enters here."""


class Function(Protocol):
    """An objective as a function of the parameters, for an oracle."""

    @property
    def incremental(self) -> bool: ...  # True: it is kept, and brought up to date with the rows that are new
    def __call__(self, params: Floats) -> tuple[float, Floats]: ...


class Solution(NamedTuple):
    """What an oracle found."""

    params: Floats
    value: float
    converged: bool
    evaluations: int


class Oracle(Protocol):
    """Minimises a function. What it keeps from one step to the next is its state, a value."""

    @property
    def plain(self) -> bool: ...  # True: it asks more of a function than value and gradient, which kernels do not offer
    def init(self, n_params: int) -> State: ...
    def step(  # negligible: what more steps may leave of the value
        self, function: Any, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]: ...


class Schedule(Protocol):
    """When a member learns, and from which rows."""

    def after(self, n: int) -> int: ...  # the number of rows at which to learn next, having learned at n
    def start(self, n: int) -> int: ...  # the first of n rows to learn from
    def weights(self, n: int) -> Floats | None: ...  # of the rows from `start` on; None: all alike


class Exploration(Protocol):
    """What is added to the members' mixture when acting; read at every checkpoint."""

    def at(self, plays: Ints, mean_reward: float) -> Explored: ...

    # plays: of each action so far, [K]; empty for action sets
    # mean_reward: so far, as a share of the reward range


class Explored(NamedTuple):
    """p = (1 - ε) softmax(sharpness (log mixture + bonus)) + ε share."""

    epsilon: float
    bonus: Floats  # [K], or empty: none
    share: Floats  # [K], sums to 1; or empty: uniform


class Penalty(Protocol):
    """Pessimism as a function of the variance proxy: its value and its slope d value / d variance."""

    def __call__(self, variance: float) -> tuple[float, float]: ...


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
