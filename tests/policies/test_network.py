from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.errors import InvalidInput
from o2pl.policies.network import (
    ACTIVATIONS,
    check_hidden_network,
    hidden_network_rows,
    n_network_weights,
    network_gradients_by_input,
    network_layers,
    rows_through_network,
    started_network,
    traced_network,
)

SIZES = (3, 5, 4, 2)


def by_hand(row: Any, params: Any, activation: str) -> Any:
    """One row, number by number."""
    act = {"silu": lambda v: v / (1 + np.exp(-v)), "relu": lambda v: max(v, 0.0), "tanh": np.tanh}[activation]
    z, found = [float(v) for v in row], network_layers(params, SIZES)
    for number, (weights, biases) in enumerate(found):
        z = [sum(z[i] * weights[i, j] for i in range(len(z))) + biases[j] for j in range(len(biases))]
        if number < len(found) - 1:
            z = [act(v) for v in z]
    return z


@pytest.mark.jax
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_rows_go_through_all_layers(activation: str) -> None:
    generator = np.random.default_rng(0)
    params, rows = generator.normal(size=n_network_weights(SIZES)), generator.normal(size=(6, 3))
    out = rows_through_network(rows, params, SIZES, activation)
    np.testing.assert_allclose(out, [by_hand(row, params, activation) for row in rows], rtol=1e-12)
    np.testing.assert_allclose(
        traced_network(params.astype(np.float32), rows.astype(np.float32), SIZES, activation), out, rtol=2e-4, atol=2e-5
    )
    weights, biases = network_layers(params, SIZES)[-1]
    np.testing.assert_allclose(hidden_network_rows(rows, params, SIZES, activation) @ weights + biases, out, rtol=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_by_input_are_those_of_small_steps(activation: str) -> None:
    generator = np.random.default_rng(1)
    params, rows = generator.normal(size=n_network_weights(SIZES)), generator.normal(size=(4, 3))
    outputs = np.array([1.0, -0.5])
    found = network_gradients_by_input(rows, params, SIZES, activation, outputs)
    for i in range(3):
        step = 1e-6 * np.eye(3)[i]
        up, down = (rows_through_network(rows + sign * step, params, SIZES, activation) @ outputs for sign in (1, -1))
        np.testing.assert_allclose(found[:, i], (up - down) / 2e-6, atol=1e-6)


def test_it_starts_with_scores_of_0_and_hidden_units_that_differ() -> None:
    params = started_network(SIZES, np.random.default_rng(2))
    assert len(params) == n_network_weights(SIZES) == 3 * 5 + 5 + 5 * 4 + 4 + 4 * 2 + 2
    rows = np.random.default_rng(3).normal(size=(7, 3))
    np.testing.assert_array_equal(rows_through_network(rows, params, SIZES, "silu"), 0)
    assert hidden_network_rows(rows, params, SIZES, "silu").std() > 0.1


@pytest.mark.parametrize("hidden", [(), (0,), (3.5,), "wide", None])
def test_widths_that_are_none_are_refused(hidden: Any) -> None:
    with pytest.raises(InvalidInput, match="hidden: found"):
        check_hidden_network(hidden, "silu")


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(InvalidInput, match="activation: found 'gelu', expected one of"):
        check_hidden_network((4,), "gelu")
