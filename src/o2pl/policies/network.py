"""Multi-layer perceptrons: z ← activation(W z + b), layer by layer, the last one without activation.

Parameters are flat: for each layer its weights [inputs, outputs], then its biases [outputs]. Acting is compiled and
works row by row, in double precision; training differentiates the same function with JAX.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.protocols import Floats

SILU, RELU, TANH = range(3)
ACTIVATIONS = {"silu": SILU, "relu": RELU, "tanh": TANH}  # silu: x / (1 + exp(-x))


def check_hidden_network(hidden: object, activation: object) -> tuple[int, ...]:
    """Check the widths of the hidden layers, one or more."""
    widths = tuple(hidden) if isinstance(hidden, list | tuple) else (hidden,)
    if not widths or not all(isinstance(each, int | np.integer) and each >= 1 for each in widths):
        raise InvalidInput(f"hidden: found {hidden!r}, expected widths of the hidden layers, such as (64, 64)")
    if activation not in ACTIVATIONS:
        raise InvalidInput(f"activation: found {activation!r}, expected one of {sorted(ACTIVATIONS)}")
    return tuple(int(each) for each in widths)


def n_network_weights(sizes: Sequence[int]) -> int:
    """Return the number of parameters of a perceptron with layers of these sizes, inputs first."""
    return sum((before + 1) * after for before, after in pairwise(sizes))


def started_network(sizes: Sequence[int], generator: np.random.Generator) -> Floats:
    """Return initial parameters: random hidden weights of variance 2 / inputs; the last layer and all scores are 0."""
    parts: list[Floats] = []
    last = len(sizes) - 2
    for layer, (before, after) in enumerate(pairwise(sizes)):
        weights = generator.normal(size=(before, after)) * math.sqrt(2 / before)
        parts += [weights.reshape(-1) * (layer < last), np.zeros(after)]
    return np.concatenate(parts).astype(np.float32).astype(np.float64)  # trained in single precision


def network_layers(params: Any, sizes: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return weights [inputs, outputs] and biases [outputs] of each layer, for NumPy or JAX arrays."""
    found, at = [], 0
    for before, after in pairwise(sizes):
        weights = params[at : at + before * after].reshape(before, after)
        at += before * after
        found.append((weights, params[at : at + after]))
        at += after
    return found


def rows_through_network(rows: Floats, params: Floats, sizes: Sequence[int], activation: str) -> Floats:
    """Apply the network, [n, inputs] -> [n, outputs], in double precision. A row's result does not depend on others."""
    return _core.perceptron(rows, params, np.array(sizes), ACTIVATIONS[activation])


def hidden_network_rows(rows: Floats, params: Floats, sizes: Sequence[int], activation: str) -> Floats:
    """Return the input of the last layer for each row, [n, width]."""
    z: Floats = rows.astype(np.float64)
    for weights, biases in network_layers(params, sizes)[:-1]:
        z = _network_activation(z @ weights + biases, activation)[0]
    return z


def network_gradients_by_input(
    rows: Floats, params: Floats, sizes: Sequence[int], activation: str, outputs: Floats
) -> Floats:
    """Return the gradient of outputs · scores by the inputs of each row. rows [n, inputs], outputs [K] or [n, K]"""
    z: Floats = rows.astype(np.float64)
    slopes = []
    found = network_layers(params, sizes)
    for weights, biases in found[:-1]:
        z, slope = _network_activation(z @ weights + biases, activation)
        slopes.append(slope)
    back = np.broadcast_to(outputs, (len(rows), sizes[-1])) @ found[-1][0].T
    for (weights, _), slope in zip(found[-2::-1], slopes[::-1], strict=True):
        back = (back * slope) @ weights.T
    return np.asarray(back)


def _network_activation(z: Floats, activation: str) -> tuple[Floats, Floats]:
    """Return the activation and its derivative."""
    if activation == "relu":
        return np.maximum(z, 0), (z > 0).astype(np.float64)
    if activation == "tanh":
        t = np.tanh(z)
        return t, 1 - t**2
    share = 1 / (1 + np.exp(-np.clip(z, -500, 500)))
    return z * share, share * (1 + z * (1 - share))


def traced_network(params: object, x: object, sizes: Sequence[int], activation: str) -> Any:
    """Return the same function for JAX to trace. x [n, inputs] -> [n, outputs]"""
    with extra("jax", "learning a neural policy"):
        import jax
    act = {"silu": jax.nn.silu, "relu": jax.nn.relu, "tanh": jax.numpy.tanh}[activation]
    *inner, (weights, biases) = network_layers(params, sizes)
    for own, shift in inner:
        x = act(x @ own + shift)
    return x @ weights + biases
