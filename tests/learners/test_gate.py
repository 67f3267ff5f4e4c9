"""`safe_to_deploy`: yes where the gain is plain, seldom where there is none, and never on rows it cannot judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.learners.gate import improvement_bound
from o2pl.theory.betting import betting_lower
from o2pl.theory.inequality import refutes


def rows(n: int, seed: int, gap: float) -> tuple[Any, ...]:
    g = np.random.default_rng(seed)
    actions = g.integers(3, size=n)
    rewards = (g.random(n) < 0.3 + gap * (actions == 2)) * 10.0
    return g.normal(size=(n, 2)), actions, rewards, np.full(n, 1 / 3)


def learner(n: int, seed: int, gap: float) -> o2pl.O2PL:
    return o2pl.O2PL(3, policy="linear", reward_range=(0, 10), random_state=seed).fit(*rows(n, seed, gap))


def test_a_plain_gain_is_safe() -> None:
    good = learner(800, 0, 0.5)
    assert good.safe_to_deploy()
    assert good.safe_to_deploy("uniform")
    assert good.safe_to_deploy(fresh=rows(400, 1, 0.5))
    assert not good.safe_to_deploy(good, fresh=rows(400, 1, 0.5))
    assert not good.safe_to_deploy(fresh=rows(5, 1, 0.5))


def test_the_bound_from_its_definition() -> None:
    good, (x, a, r, q) = learner(300, 0, 0.5), rows(200, 1, 0.5)
    w = good.predict_proba(x)[np.arange(200), a] / q
    slow = [(1 + (w[s] - 1) * r[s] / 10) / 2 for s in range(200)]
    expected = 10 * (2 * betting_lower(np.array(slow), 0.1, False)[-1] - 1)
    assert improvement_bound(good, good._checked(x, a, r, q), "logged", 0.1) == pytest.approx(expected, abs=1e-9)


def test_no_gain_is_seldom_called_safe() -> None:
    """δ = .1, 200 logs in which all actions are equal; binomial test at 1e-3."""
    wrong = sum(learner(100, seed, 0.0).safe_to_deploy(delta=0.1) for seed in range(200))
    assert not refutes(wrong, 200, 0.1, 1e-3)


def test_what_cannot_be_judged() -> None:
    good = learner(100, 0, 0.5)
    with pytest.raises(o2pl.InvalidInput, match="baseline: found 'best'"):
        good.safe_to_deploy("best")
    with pytest.raises(o2pl.InvalidInput, match="delta"):
        good.safe_to_deploy(delta=1.0)
    with pytest.raises(o2pl.InvalidInput, match="expected at least two"):
        learner(1, 0, 0.5).safe_to_deploy()
    with pytest.raises(AttributeError, match="has seen no data"):
        o2pl.O2PL(3).safe_to_deploy()
