"""A script that prints a hash of what each kind of learner decides and learns; `test_native.py` runs it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

import o2pl

ROUNDS, K = 400, 4


def rows(generator: Any) -> list[Any]:
    return list(generator.normal(size=(ROUNDS, 6)))


def words(generator: Any) -> list[Any]:
    return [{"user": f"u{generator.integers(9)}", "age": float(generator.normal())} for _ in range(ROUNDS)]


def items(generator: Any) -> list[Any]:
    return [generator.normal(size=(generator.integers(2, 6), 3)) for _ in range(ROUNDS)]


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], list[Any]]]] = {
    "bandit": (lambda: o2pl.Bandit(K, random_state=0), rows),
    "o2pl": (lambda: o2pl.O2PL(K, random_state=0), rows),
    "replay": (lambda: o2pl.O2PL(K, policy="linear", schedule="replay", random_state=0), rows),
    "hashed": (lambda: o2pl.Bandit(K, policy="hashed", random_state=0), words),
    "hashed o2pl": (lambda: o2pl.O2PL(K, policy="hashed", random_state=0), words),
    "sets": (lambda: o2pl.Bandit(policy="actionwise", random_state=0), items),
    "gaussian": (lambda: o2pl.GaussianO2PL(random_state=0), rows),
    "continuous": (lambda: o2pl.ContinuousBandit((-2, 2), random_state=0), rows),
}


def fingerprint(name: str) -> str:
    make, contexts_of = KINDS[name]
    learner, digest, world = make(), hashlib.sha256(), np.random.default_rng(1)
    for context in contexts_of(np.random.default_rng(0)):
        decision = learner.act(context)
        digest.update(np.array([float(decision.action), decision.propensity]).tobytes())
        learner.update(decision, float(world.random() < 0.3 + 0.1 * (int(decision.action) % 3)))
    for member in learner._begun().members:
        digest.update(np.asarray(member.params).tobytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    for name in KINDS:
        print(f"{name}: {fingerprint(name)}")
