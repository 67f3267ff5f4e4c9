"""The protocols of all parts of o2pl, on one page.

n rows, d features, K actions, D parameters. A *feature map* converts contexts to feature rows. A *policy* scores
actions. An *objective* measures how good scores are, as sums over rows that `combine` merges. An *oracle* minimises it.
A *schedule* sets when to learn, and from which rows. An *exploration* rule sets what is mixed in when acting. The parts
are independent; `learners.engine` combines them. `kernels` has faster versions of some combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Seed = int | Sequence[int] | np.random.SeedSequence | np.random.Generator | None  # accepted by numpy.random.default_rng
State = Mapping[str, Array]  # arrays that a part keeps; saved and restored unchanged
Pullback = Callable[
    [Floats], Floats
]  # cotangent c, shaped like the scores  ->  Σ c ∇ scores, shaped like the parameters
ValueAndGradient = Callable[[Floats], tuple[float, Floats]]


class FeatureMap(Protocol):
    """Converts contexts to features. What it learns from contexts is a separate value, the state."""

    def width(self, n_inputs: int, state: State | None = None) -> int: ...  # features per row; may grow with the state
    def init(self, n_inputs: int) -> State: ...
    def observe(self, state: State, rows: Any) -> State: ...  # returns a new state; the old one is unchanged
    def transform(self, state: State, rows: Any) -> Any: ...  # [n, n_inputs] -> [n, width]


class Policy(Protocol):
    """A policy π(a|x). A discrete policy gives scores, whose log-softmax is log π; a continuous one its log density."""

    @property
    def continuous(self) -> bool: ...
    def n_params(self, n_features: int) -> int: ...
    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats: ...
    def forward(self, params: Floats, features: Any, actions: Array) -> tuple[Floats, Pullback]:
        """Scores and their pullback: [n, K], flat [total] for action sets; continuous: log π(a_s|x_s), [n]."""

    def scores(self, params: Floats, features: Any) -> Floats:
        """Return the scores for acting, in double precision. A row's result does not depend on other rows."""


class DiscretePolicy(Policy, Protocol):
    """A policy over discrete actions. Acting needs only its scores."""


class ContinuousPolicy(Policy, Protocol):
    """A policy over real-valued actions, drawn around its scores."""

    def imitate(
        self, features: Floats, actions: Floats
    ) -> Floats: ...  # initial parameters close to the logging policy
    def moments(
        self, scores: Floats, params: Floats
    ) -> tuple[Floats, Floats]: ...  # mean and standard deviation, [n] each
    def density(self, scores: Floats, params: Floats, actions: Floats) -> Floats: ...  # [n]
    def sample(self, scores: Floats, params: Floats, uniforms: Floats) -> tuple[Floats, Floats]: ...


class Objective(Protocol):
    """Measures how good a policy is on a log."""

    @property
    def extra(self) -> int: ...  # number of additional parameters, after the policy's
    def rate(self, n: int) -> float: ...  # learning rate of the union's member weights after n rows
    def prepare(  # returns a PreparedLog; totals: of the whole log, if these rows are a part of it
        self, rows: Any, control: Any = None, weights: Floats | None = None, totals: Any = None
    ) -> Any: ...


class PreparedLog(Protocol):
    """A log with everything that is constant while parameters change."""

    @property
    def actions(self) -> Array: ...
    @property
    def negligible(self) -> float: ...  # tolerance of a solve, in units of the value
    def started(self, params: Floats) -> Floats: ...  # starting point of a solve
    def partial(self, scores: Floats, rows: slice | Ints, extra: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return sums over these rows, and the cotangents of the scores; `combine` needs their pullbacks."""

    def combine(self, params: Floats, sums: Floats, gradients: Sequence[Floats]) -> tuple[float, Floats]:
        """Return the objective and its gradient from the sums over all rows. Terms that are no sums (Φ) enter here."""


class Function(Protocol):
    """An objective as a function of the parameters, for an oracle."""

    @property
    def incremental(self) -> bool: ...  # True: it is kept and updated with new rows
    def __call__(self, params: Floats) -> tuple[float, Floats]: ...


class Solution(NamedTuple):
    """The result of an oracle."""

    params: Floats
    value: float
    converged: bool
    evaluations: int


class Oracle(Protocol):
    """Minimises a function. What it keeps between steps is its state, a value."""

    @property
    def plain(self) -> bool: ...  # True: it needs more than value and gradient, which kernels do not offer
    def init(self, n_params: int) -> State: ...
    def step(  # negligible: tolerance, in units of the value
        self, function: Any, params: Floats, state: State, negligible: float = 0.0
    ) -> tuple[Solution, State]: ...


class Schedule(Protocol):
    """Sets when a member learns, and from which rows."""

    def after(self, n: int) -> int: ...  # number of rows at which to learn next, after learning at n
    def start(self, n: int) -> int: ...  # the first of n rows to learn from
    def weights(self, n: int) -> Floats | None: ...  # weights of the rows from `start` on; None: equal


class Exploration(Protocol):
    """Sets what is added to the members' mixture when acting; evaluated at every checkpoint."""

    def at(self, plays: Ints, mean_reward: float, rewards: Floats | None = None) -> Explored: ...

    # plays: number of plays of each action so far, [K]; empty for action sets
    # mean_reward: mean reward so far, as a fraction of the reward range
    # rewards: sum of the rewards of each action so far, as such fractions, [K]; None: not counted (items)


class Explored(NamedTuple):
    """What is added to the logarithm of a mixture, or to the log-odds of predicted rewards: see `policies.sampling`."""

    epsilon: float
    bonus: Floats  # [K], or empty: none
    share: Floats  # [K], sums to 1; or empty: uniform


class Penalty(Protocol):
    """Pessimism as a function of the variance proxy: value and derivative d value / d variance."""

    def __call__(self, variance: float) -> tuple[float, float]: ...


class Learner(Protocol):
    """Decides and learns, one interaction at a time."""

    def act(self, context: Any) -> Any: ...  # a Decision
    def update(self, context: Any, action: Any, reward: float, propensity: float) -> Any: ...


class Rounds(Protocol):
    """Rounds of a simulated environment with all randomness drawn in advance: the reward of any action is available.

    Learners that run on the same rounds see the same contexts and the same noise.
    """

    @property
    def contexts(self) -> Floats: ...  # [n, d]
    def rewards(self, rows: Ints, actions: Array) -> Floats: ...  # rewards of `actions` in rounds `rows`, [m]
    def expected(self, rows: Ints, actions: Array) -> Floats: ...  # their exact means, [m]
    @property
    def best(self) -> Floats: ...  # expected reward of the best action of each round, [n]


class Environment(Protocol):
    """A simulated environment. n_actions is None if actions are real numbers."""

    @property
    def n_actions(self) -> int | None: ...
    @property
    def reward_range(self) -> tuple[float, float]: ...
    def sample(self, rounds: int, generator: np.random.Generator) -> Rounds: ...
