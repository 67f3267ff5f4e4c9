"""Neural policies: scores of a network, trained with JAX (extra `jax`). Acting does not need JAX.

`Neural` chooses among a fixed number of actions, `NeuralSets` among action sets, `NeuralGaussian` plays a real number,
and `JaxPolicy` wraps any function. Parameters are one flat vector, as oracles and files need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from o2pl.data.contexts import ActionSets
from o2pl.errors import InvalidInput
from o2pl.policies.jax_helpers import jax_pulled_back, jax_scored_alone, jax_slopes, jax_unravelled
from o2pl.policies.mixture import UniformMixture
from o2pl.policies.network import (
    check_hidden_network,
    hidden_network_rows,
    n_network_weights,
    network_gradients_by_input,
    rows_through_network,
    started_network,
    traced_network,
)
from o2pl.policies.truncated import Truncated
from o2pl.protocols import Array, Floats, Pullback
from o2pl.storage import storable
from o2pl.validation import check_count


@storable
@dataclass(frozen=True)
class Neural:
    """A perceptron with one output per action: π(·|x) = softmax(f(x)).

    `n_actions`: None: that of the learner. `hidden`: widths of the hidden layers. `activation`: "silu", "relu" or
    "tanh". `seed`: of the initial hidden weights; the last layer starts at 0, the uniform policy.
    """

    n_actions: int | None = None
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "silu"
    seed: int = 0
    continuous = False
    sets = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", check_hidden_network(self.hidden, self.activation))

    def sizes(self, n_features: int) -> tuple[int, ...]:
        """Return the sizes of the layers, inputs first."""
        if self.n_actions is None:
            raise InvalidInput("n_actions: found None, expected a number of actions")
        return (n_features, *self.hidden, self.n_actions)

    def n_params(self, n_features: int) -> int:
        return n_network_weights(self.sizes(n_features))

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return started_network(self.sizes(n_features), generator or np.random.default_rng(self.seed))

    def apply(self, params: Any, x: Any) -> Any:
        """Return the scores of rows x [n, d], for JAX to trace. [n, K]"""
        return traced_network(params, x, self.sizes(x.shape[1]), self.activation)

    def forward(self, params: Floats, features: Floats, actions: Array) -> tuple[Floats, Pullback]:
        return jax_pulled_back(self, params, features)

    def scores(self, params: Floats, features: Floats) -> Floats:
        return rows_through_network(features, params, self.sizes(features.shape[1]), self.activation)

    def input_scores(self, params: Floats, rows: Floats) -> Floats:
        """Return the scores of rows, [n, K], for explanations."""
        return self.scores(params, rows)

    def input_slopes(self, params: Floats, rows: Floats, outputs: Floats) -> Floats:
        """Return the gradients of outputs · scores by the inputs, [n, d], for explanations."""
        return network_gradients_by_input(rows, params, self.sizes(rows.shape[1]), self.activation, outputs)


@storable
@dataclass(frozen=True)
class NeuralSets:
    """A perceptron over (context, action) features for varying action sets: π(a|x) ∝ exp f(x, a).

    `towers`: use one perceptron for the user and one for the item instead, each with this many outputs; the score is
    their inner product plus an item intercept. For `act(user, items)`. `shared`: number of user features, set by the
    learner; 0 without towers.
    """

    hidden: tuple[int, ...] = (64, 64)
    activation: str = "silu"
    towers: int = 0
    shared: int = 0
    seed: int = 0
    continuous = False
    sets = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", check_hidden_network(self.hidden, self.activation))
        if self.towers:
            check_count("towers", self.towers)

    def _towers(self, n_features: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the layer sizes of both towers; rows are (list slot, user, item)."""
        items = n_features - 1 - self.shared
        if self.shared < 1 or items < 1:
            raise InvalidInput(
                f"towers: found {self.towers} for action sets without a user, expected contexts of a user and items:"
                " act(user, items); or towers=0"
            )
        return (self.shared, *self.hidden, self.towers), (items, *self.hidden, self.towers + 1)

    def sizes(self, n_features: int) -> tuple[int, ...]:
        return (n_features, *self.hidden, 1)

    def n_params(self, n_features: int) -> int:
        if self.towers:
            return sum(n_network_weights(sizes) for sizes in self._towers(n_features))
        return n_network_weights(self.sizes(n_features))

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        generator = generator or np.random.default_rng(self.seed)
        if not self.towers:
            return started_network(self.sizes(n_features), generator)
        users, items = self._towers(n_features)
        own = started_network(users, generator)
        last = (users[-2] + 1) * users[-1]  # with both last layers at 0 the gradient would be 0
        scale = np.sqrt(1 / users[-2])
        own[-last : -users[-1]] = (generator.normal(size=last - users[-1]) * scale).astype(np.float32)
        return np.concatenate([own, started_network(items, generator)])

    def apply(self, params: Any, x: Any) -> Any:
        """Return the scores of rows x [total, d], for JAX to trace. [total]"""
        if not self.towers:
            return traced_network(params, x, self.sizes(x.shape[1]), self.activation)[:, 0]
        users, items = self._towers(x.shape[1])
        own, cut = n_network_weights(users), 1 + self.shared
        u = traced_network(params[:own], x[:, 1:cut], users, self.activation)
        v = traced_network(params[own:], x[:, cut:], items, self.activation)
        return (u * v[:, 1:]).sum(axis=1) + v[:, 0]

    def forward(self, params: Floats, features: ActionSets, actions: Array) -> tuple[Floats, Pullback]:
        return jax_pulled_back(self, params, features.values)

    def scores(self, params: Floats, features: ActionSets) -> Floats:
        x = features.values
        if not self.towers:
            return rows_through_network(x, params, self.sizes(x.shape[1]), self.activation)[:, 0]
        users, items = self._towers(x.shape[1])
        own, cut = n_network_weights(users), 1 + self.shared
        u = rows_through_network(x[:, 1:cut], params[:own], users, self.activation)
        v = rows_through_network(x[:, cut:], params[own:], items, self.activation)
        return np.asarray((u * v[:, 1:]).cumsum(axis=1)[:, -1] + v[:, 0])  # cumsum: fixed order for any batch size

    def input_scores(self, params: Floats, rows: Floats) -> Floats:
        """Return the scores of rows, [n, 1]."""
        return self.scores(params, ActionSets(rows, np.array([0, len(rows)])))[:, None]

    def input_slopes(self, params: Floats, rows: Floats, outputs: Floats) -> Floats:
        if not self.towers:
            return network_gradients_by_input(rows, params, self.sizes(rows.shape[1]), self.activation, outputs)
        users, items = self._towers(rows.shape[1])
        own, cut = n_network_weights(users), 1 + self.shared
        u = rows_through_network(rows[:, 1:cut], params[:own], users, self.activation)
        v = rows_through_network(rows[:, cut:], params[own:], items, self.activation)
        with_level = np.concatenate([np.ones((len(u), 1)), u], axis=1)
        by_user = network_gradients_by_input(rows[:, 1:cut], params[:own], users, self.activation, v[:, 1:])
        by_item = network_gradients_by_input(rows[:, cut:], params[own:], items, self.activation, with_level)
        return np.asarray(outputs[0] * np.concatenate([np.zeros((len(rows), 1)), by_user, by_item], axis=1))


@storable
@dataclass(frozen=True)
class NeuralGaussian:
    """A normal policy whose mean (and width, if heteroscedastic) is given by a perceptron.

    `normal` has the other settings: centre, scale, bounds, log-normal. Parameters: the network's, then ω if it is
    learned.
    """

    normal: Truncated = field(default_factory=Truncated)
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"  # bounded, so that means stay bounded
    seed: int = 0
    continuous = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", check_hidden_network(self.hidden, self.activation))

    def sizes(self, n_features: int) -> tuple[int, ...]:
        return (n_features, *self.hidden, 2 if self.normal.heteroscedastic else 1)

    @property
    def _widths(self) -> int:
        """Number of parameters of a width that is the same for all contexts."""
        return int(self.normal.learn_scale and not self.normal.heteroscedastic)

    def n_params(self, n_features: int) -> int:
        return n_network_weights(self.sizes(n_features)) + self._widths

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        own = started_network(self.sizes(n_features), generator or np.random.default_rng(self.seed))
        return np.concatenate([own, np.zeros(self._widths)])

    def apply(self, params: Any, x: Any) -> Any:
        """Return mean minus centre, and the width if it depends on the context, for JAX to trace. [n, 1 or 2]"""
        sizes = self.sizes(x.shape[1])
        return traced_network(params[: n_network_weights(sizes)], x, sizes, self.activation)

    def forward(self, params: Floats, features: Floats, actions: Array) -> tuple[Floats, Pullback]:
        own = len(params) - self._widths
        of_network, pull = jax_pulled_back(self, params[:own], features)
        log_density, by_mean, by_width = self.normal.by_scores(self._scores(of_network, params), actions)

        def pullback(cotangent: Floats) -> Floats:
            pulled = [cotangent * by_mean]
            if self.normal.heteroscedastic:
                pulled.append(cotangent * by_width)
            gradient = pull(np.stack(pulled, axis=1))
            return np.append(gradient, cotangent @ by_width) if self._widths else gradient

        return log_density, pullback

    def scores(self, params: Floats, features: Floats) -> Floats:
        own = len(params) - self._widths
        sizes = self.sizes(features.shape[1])
        return self._scores(rows_through_network(features, params[:own], sizes, self.activation), params)

    def _scores(self, of_network: Floats, params: Floats) -> Floats:
        """Return the scores in the form of `Truncated`: mean minus centre and width of each row. [n, 2]"""
        if self.normal.heteroscedastic:
            return of_network.astype(np.float64)
        width = params[-1] if self._widths else 0.0
        return np.stack([of_network[:, 0].astype(np.float64), np.full(len(of_network), width)], axis=1)

    def imitate(self, features: Floats, actions: Floats) -> Floats:
        """Return parameters that fit these actions: least squares of the last layer."""
        sizes, params = self.sizes(features.shape[1]), self.init(features.shape[1])
        own = len(params) - self._widths
        hidden = hidden_network_rows(features, params[:own], sizes, self.activation)
        hidden = np.concatenate([np.ones((len(hidden), 1)), hidden], axis=1)
        linear = self.normal.imitate(hidden, actions)
        biases, outputs = own - sizes[-1], sizes[-1]
        weights = params[biases - sizes[-2] * outputs : biases].reshape(-1, outputs)
        weights[:, 0], params[biases] = linear[1 : hidden.shape[1]], linear[0]
        if len(linear) > hidden.shape[1]:  # the constant of the width is first there, and last here
            params[-1] = linear[hidden.shape[1]]
        return params

    def moments(self, scores: Floats, params: Floats) -> tuple[Floats, Floats]:
        return self.normal.moments(scores, params)

    def density(self, scores: Floats, params: Floats, actions: Floats) -> Floats:
        return self.normal.density(scores, params, actions)

    def sample(self, scores: Floats, params: Floats, uniforms: Floats) -> tuple[Floats, Floats]:
        return self.normal.sample(scores, params, uniforms)


@storable
@dataclass(frozen=True)
class JaxPolicy:
    """A policy whose scores are any function that JAX can differentiate: function(params, x).

    `params` is what `start(n_features)` returns: arrays in lists, tuples or dictionaries. x [n, d] are the features of
    n contexts, and the scores are [n, n_actions]. With `n_actions=None`, x has one row per (context, action) of action
    sets, and there is one score per row, [total]. To save a learner, define both functions in a module that can be
    imported where it is loaded.
    """

    function: Callable[[Any, Any], Any]
    start: Callable[[int], Any]
    n_actions: int | None = None
    continuous = False

    def __post_init__(self) -> None:
        for name in ("function", "start"):
            if not callable(getattr(self, name)):
                raise InvalidInput(f"{name}: found {getattr(self, name)!r}, expected a function")

    @property
    def sets(self) -> bool:
        return self.n_actions is None

    def n_params(self, n_features: int) -> int:
        return len(self.init(n_features))

    def init(self, n_features: int, generator: np.random.Generator | None = None) -> Floats:
        return _initial_neural_params(self, n_features)[0].copy()

    def apply(self, params: Any, x: Any) -> Any:
        scores = self.function(_initial_neural_params(self, x.shape[1])[1](params), x)
        expected = (x.shape[0],) if self.n_actions is None else (x.shape[0], self.n_actions)
        if scores.shape != expected:
            raise InvalidInput(f"function: found scores of shape {scores.shape}, expected {expected}")
        return scores

    def forward(self, params: Floats, features: Any, actions: Array) -> tuple[Floats, Pullback]:
        return jax_pulled_back(self, params, features.values if self.sets else features)

    def scores(self, params: Floats, features: Any) -> Floats:
        return jax_scored_alone(self, params, features.values if self.sets else features)

    def input_scores(self, params: Floats, rows: Floats) -> Floats:
        return jax_scored_alone(self, params, rows).reshape(len(rows), -1)

    def input_slopes(self, params: Floats, rows: Floats, outputs: Floats) -> Floats:
        return jax_slopes(self, params, rows, outputs)


@lru_cache
def _initial_neural_params(policy: JaxPolicy, n_features: int) -> tuple[Floats, Callable[[Any], Any]]:
    """Return the initial parameters as a flat vector, and the function that restores their structure."""
    return jax_unravelled(policy.start(n_features))


_NETWORKS = Neural | NeuralSets | NeuralGaussian | JaxPolicy


def innermost_neural(policy: object) -> Any:
    """Return the inner policy of a uniform mixture."""
    return policy.policy if isinstance(policy, UniformMixture) else policy


def is_neural(policy: object) -> bool:
    """Return whether a policy is a network, trained by minibatches."""
    return isinstance(innermost_neural(policy), _NETWORKS)


def neural_with_actions(policy: object, n_actions: int | None) -> Any:
    """Return the policy with the learner's number of actions, if it has none."""
    if isinstance(policy, UniformMixture):
        return replace(policy, policy=neural_with_actions(policy.policy, n_actions))
    return replace(policy, n_actions=n_actions) if isinstance(policy, Neural) and policy.n_actions is None else policy
