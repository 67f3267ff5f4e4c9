from __future__ import annotations

import warnings

import numpy as np
import pytest

import o2pl

G = np.random.default_rng(0)


def run(user: bool, rounds: int = 40) -> None:
    learner = o2pl.Bandit(policy="actionwise", random_state=0)
    for _ in range(rounds):
        items = np.column_stack([G.normal(size=(5, 2)), np.ones(5)])
        if user:
            items = np.column_stack([items, np.tile(G.normal(size=2), (5, 1))])
        learner.update(items, learner.act(items).action, 1.0, 0.2)


def test_a_user_among_the_items_columns_is_told_once() -> None:
    with pytest.warns(UserWarning, match=r"column 3, 4: found the same .* call act\(user, items\)") as said:
        run(user=True, rounds=200)
    assert len(said) == 1


def test_a_constant_is_no_user() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(user=False)
        run(user=True, rounds=10)
