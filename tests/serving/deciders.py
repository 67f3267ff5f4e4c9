"""Learned policies for tests, as the trainer would publish them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import o2pl


def body_of(decider: Any) -> bytes:
    with TemporaryDirectory() as folder:
        decider.save(Path(folder, "model"))
        return Path(folder, "model").read_bytes()


@cache
def ranked() -> Any:
    """Prefers the action called `b` for users called `u0`, the action called `a` for others."""
    generator = np.random.default_rng(0)
    learner = o2pl.Bandit(policy="hashed actionwise", random_state=0)
    for k in range(150):
        user = f"u{k % 2}"
        context = {"user": user, "_multi": [{"id": name, "x": float(generator.random())} for name in "abc"]}
        decision = learner.act(context)
        good = decision.action == (1 if user == "u0" else 0)
        learner.update(context, decision.action, float(good), decision.propensity)
    return learner.snapshot()


@cache
def fixed() -> Any:
    """Of three actions."""
    learner = o2pl.Bandit(actions=["left", "middle", "right"], policy="hashed", random_state=0)
    for k in range(120):
        context = {"user": f"u{k % 2}"}
        decision = learner.act(context)
        learner.update(context, decision.action, float(decision.action == "right"), decision.propensity)
    return learner.snapshot()


@cache
def continuous() -> Any:
    """Of a number from 0 to 10."""
    generator = np.random.default_rng(0)
    learner = o2pl.ContinuousBandit((0.0, 10.0), random_state=0)
    for _ in range(100):
        context = generator.normal(size=2)
        decision = learner.act(context)
        learner.update(context, decision.action, max(0.0, 1 - abs(decision.action - 7) / 5), decision.propensity)
    return learner.snapshot()
