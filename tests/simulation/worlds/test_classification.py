from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.simulation.worlds import Classification, Embedded

from .checks import assert_rate_is


def labelled(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The context says the label: row i is (i, label)."""
    y = np.random.default_rng(0).integers(0, 4, n)
    return np.stack([np.arange(n), y], axis=1).astype(float), y


def test_only_the_right_class_pays() -> None:
    X, y = labelled(200)
    rounds = Classification.of(X, y).sample(1000, np.random.default_rng(1))
    assert len(rounds) == 200  # as many as there are rows
    order = rounds.contexts[:, 0].astype(int)
    assert sorted(order) == list(range(200))
    assert list(order) != list(range(200))
    for row in range(200):
        for action in range(4):
            paid = rounds.rewards(np.array([row]), np.array([action]))[0]
            assert paid == (1.0 if y[order[row]] == action else 0.0)
            assert rounds.expected(np.array([row]), np.array([action]))[0] == paid


def test_the_horizon_is_the_lesser_of_rows_and_rounds() -> None:
    assert len(Classification(Embedded("iris")).sample(40, np.random.default_rng(0))) == 40
    assert len(Classification(Embedded("iris")).sample(5000, np.random.default_rng(0))) == 150


def test_flipped_rewards() -> None:
    X, y = labelled(5000)
    rounds = Classification.of(X, y, flip=0.2).sample(5000, np.random.default_rng(2))
    right = rounds.contexts[:, 1].astype(int)
    rows = np.arange(5000)
    assert_rate_is(rounds.rewards(rows, right), 0.8, "right class")
    assert_rate_is(rounds.rewards(rows, (right + 1) % 4), 0.2, "wrong class")
    np.testing.assert_allclose(rounds.expected(rows, right), 0.8)
    np.testing.assert_allclose(rounds.expected(rows, (right + 1) % 4), 0.2)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="source"):
        Classification("iris")
    with pytest.raises(InvalidInput, match="flip"):
        Classification(Embedded("iris"), flip=0.5)
