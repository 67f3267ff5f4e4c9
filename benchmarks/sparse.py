"""Contexts of words: the loop beside Vowpal Wabbit's on the same strings, and one objective beside C++ (sparse.cpp)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import vw
from benchmarks.data import World
from benchmarks.internals import Outcomes, sparse_value, terms
from benchmarks.measure import Row, played, times
from benchmarks.reference import at, build
from benchmarks.rounds import Make, our_loop, where
from o2pl import O2PL, Bandit
from o2pl.protocols import Floats, Ints, ValueAndGradient

FIELDS = ((10, 1.0), (100, 1.0), (1_000, 1.2), (5_000, 1.2), (18_890, 1.2))  # words of a field, power of its Zipf law
OF_EACH = 4  # fields: twenty words a context, of a vocabulary of 100,000
Contexts = list[dict[str, dict[str, str]]]
Rows = tuple[Ints, Floats, Ints]  # indices, values, offsets


def word_bandit(rounds: int, n_actions: int, seed: int = 0) -> tuple[Contexts, Floats, Floats]:
    """Contexts of two namespaces, rewards of all actions [T, K] in {0, 1} and their means: logistic in the words."""
    generator = np.random.default_rng(seed)
    fields = [field for field in FIELDS for _ in range(OF_EACH)]
    logits, columns = np.zeros((rounds, n_actions)), []
    for words, power in fields:
        shares = 1 / np.arange(1, words + 1) ** power
        drawn = generator.choice(words, size=rounds, p=shares / shares.sum())
        logits += generator.normal(size=(words, n_actions))[drawn] * 2 / np.sqrt(len(fields))
        columns.append(drawn.tolist())
    means = 1 / (1 + np.exp(-logits))
    half = len(fields) // 2
    contexts = [
        {
            "user": {f"f{i}": f"w{columns[i][t]}" for i in range(half)},
            "item": {f"f{i}": f"w{columns[i][t]}" for i in range(half, len(fields))},
        }
        for t in range(rounds)
    ]
    return contexts, (generator.random(means.shape) < means).astype(np.float64), means


def context_text(context: dict[str, dict[str, str]]) -> str:
    """As VW reads it: the same words, in one namespace."""
    words = [f"{space}.{key}={word}" for space, own in context.items() for key, word in own.items()]
    return "shared |s " + " ".join(words)


def hashed(n_actions: int, seed: int = 0, learner: type[Bandit | O2PL] = Bandit, schedule: str = "geometric") -> Any:
    return learner(n_actions, policy="hashed", schedule=schedule, random_state=seed)


def loop(make: Make = hashed, rounds: int = 5000, n_actions: int = 5, repeats: int = 7) -> Row:
    """Act and update from Python. VW reads text."""

    def world(seed: int) -> World:
        contexts, table, _ = word_bandit(rounds, n_actions, seed)
        return World(contexts, table.tolist(), table)

    row = played(
        world,
        lambda here, seed: our_loop(make(n_actions, seed), here.contexts, here.rewards),
        lambda here, seed: vw.python_loop([context_text(one) for one in here.contexts], here.rewards, seed),
        rounds,
        repeats,
    )
    contexts, rewards, _ = world(0)
    return row._replace(note=where(make(n_actions, 0), contexts, lambda t, action: rewards[t][action]))


# -- one objective


@cache
def _function() -> Any:
    function = build(Path(__file__).with_name("sparse.cpp")).sparse_objective
    pointer, long = ctypes.c_void_p, ctypes.c_int64
    function.restype = ctypes.c_double
    function.argtypes = (
        pointer, long, ctypes.c_int, pointer, pointer, pointer, long, pointer, pointer, pointer, pointer,
        ctypes.c_double, pointer,
    )  # fmt: skip
    return function


class SparseReference:
    """What `sparse_value` computes, for p = 0."""

    def __init__(self, rows: Rows, slots: int, n_actions: int, came: Outcomes) -> None:
        found = terms(came)
        columns = came.actions.astype(np.int32), found.residuals.astype(np.float32)
        self._rows, self._slots, self._n_actions = rows, slots, n_actions
        self._came = (*columns, (1 / came.propensities).astype(np.float32), found.penalty)
        self._shrink = found.shrink

    def __call__(self, params: Floats, gradient: Floats) -> float:
        n = len(self._came[0])
        rows, came = map(at, self._rows), map(at, self._came)
        return float(_function()(at(params), self._slots, self._n_actions, *rows, n, *came, self._shrink, at(gradient)))


def both_objectives(
    n: int, nonzeros: int, slots: int, n_actions: int, seed: int = 0
) -> tuple[ValueAndGradient, SparseReference, Floats]:
    """Ours and the reference on one log of a uniform logger, and parameters to evaluate both at."""
    generator = np.random.default_rng(seed)
    shares = 1 / np.arange(1, slots)  # Zipf
    indices = (1 + generator.choice(slots - 1, size=n * nonzeros, p=shares / shares.sum())).astype(np.int32)
    values = generator.standard_normal(n * nonzeros, np.float32)
    rows = indices, values, np.arange(0, n * nonzeros + 1, nonzeros)
    actions, rewards = generator.integers(n_actions, size=n), (generator.random(n) < 0.4).astype(np.float64)
    came = Outcomes(actions, rewards, np.full(n, 1 / n_actions))
    params = (0.3 * generator.standard_normal((slots, n_actions))).astype(np.float32).reshape(-1)
    return sparse_value(*rows, slots, n_actions, came), SparseReference(rows, slots, n_actions, came), params


def batch(n: int, nonzeros: int, slots: int, n_actions: int, repeats: int = 9) -> Row:
    """Milliseconds of ours and of the C++ reference, one thread each."""
    _function()
    ours, reference, params = both_objectives(n, nonzeros, slots, n_actions)
    gradient = np.empty_like(params)
    return times(lambda: ours(params), lambda: reference(params, gradient), "ms", repeats)
