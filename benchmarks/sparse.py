"""Contexts of words: the loop beside Vowpal Wabbit's on the same strings, and one objective beside C++ (sparse.cpp)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import vw
from benchmarks.measure import Row, rates, times
from benchmarks.reference import at, build
from o2pl import O2PL
from o2pl.interactions import Interactions
from o2pl.learners.settings import Settings
from o2pl.learners.sparse import SparseValue
from o2pl.protocols import Floats, Ints
from o2pl.rows import SparseRows

FIELDS = ((10, 1.0), (100, 1.0), (1_000, 1.2), (5_000, 1.2), (18_890, 1.2))  # words of a field, power of its Zipf law
OF_EACH = 4  # fields: twenty words a context, of a vocabulary of 100,000
Contexts = list[dict[str, dict[str, str]]]


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


def our_loop(contexts: Contexts, rewards: list[list[float]], schedule: str) -> float:
    learner = O2PL(len(rewards[0]), policy="hashed", schedule=schedule, random_state=0)
    total = 0.0
    for context, row in zip(contexts, rewards, strict=True):
        action, propensity = learner.act(context)
        learner.update(context, action, row[action], propensity)
        total += row[action]
    return total / len(contexts)


def loop(schedule: str, text_ahead: bool = False, rounds: int = 5000, n_actions: int = 5) -> Row:
    """Act and update from Python. VW reads text; with `text_ahead` contexts are made text before the clock starts."""
    contexts, table, _ = word_bandit(rounds, n_actions)
    rewards, texts = table.tolist(), [context_text(context) for context in contexts]

    def theirs() -> float:
        return vw.python_loop(texts if text_ahead else [context_text(context) for context in contexts], rewards)

    return rates(lambda: our_loop(contexts, rewards, schedule), theirs, rounds, "rounds/s")


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
    """What `SparseValue` computes, without a control variate and for p = 0."""

    def __init__(self, rows: SparseRows, n_actions: int, came: tuple[Ints, Floats, Floats], settings: Settings) -> None:
        phi = settings.phi(len(rows))
        penalty = np.array([phi.alpha, phi.t, phi.log_inv_delta, phi.scale])
        self._rows, self._n_actions, self._kept = rows, n_actions, (*came, penalty)
        self._shrink = settings.l2 / len(rows)

    def __call__(self, params: Floats, gradient: Floats) -> float:
        rows, (played, residuals, inverse, penalty) = self._rows, self._kept
        return float(
            _function()(
                at(params), rows.width, self._n_actions, at(rows.indices), at(rows.values), at(rows.offsets), len(rows),
                at(played), at(residuals), at(inverse), at(penalty), self._shrink, at(gradient),
            )
        )  # fmt: skip


def both_objectives(
    n: int, nonzeros: int, slots: int, n_actions: int, seed: int = 0
) -> tuple[SparseValue, SparseReference, Floats]:
    """Ours and the reference on one log of a uniform logger, and parameters to evaluate both at."""
    generator = np.random.default_rng(seed)
    shares = 1 / np.arange(1, slots)  # Zipf
    indices = (1 + generator.choice(slots - 1, size=n * nonzeros, p=shares / shares.sum())).astype(np.int32)
    values = generator.standard_normal(n * nonzeros, np.float32)
    rows = SparseRows(indices, values, np.arange(0, n * nonzeros + 1, nonzeros), slots)
    actions, losses = generator.integers(n_actions, size=n), -(generator.random(n) < 0.4).astype(np.float64)
    settings = Settings(penalty=0.1, baseline="mean", l2=0.1)
    objective = settings.objective(Interactions(rows, actions, losses, np.full(n, 1 / n_actions)))
    came = (
        actions.astype(np.int32),
        objective.residuals.astype(np.float32),
        (1 / objective.propensities).astype(np.float32),
    )
    ours = SparseValue(rows, n_actions, (*came, np.empty((0, n_actions), np.float32)), settings.numbers, settings.l2)
    params = (0.3 * generator.standard_normal((slots, n_actions))).astype(np.float32).reshape(-1)
    return ours, SparseReference(rows, n_actions, came, settings), params


def batch(n: int, nonzeros: int, slots: int, n_actions: int, repeats: int = 9) -> Row:
    """Milliseconds of `SparseValue` and of the C++ reference, one thread each."""
    _function()
    ours, reference, params = both_objectives(n, nonzeros, slots, n_actions)
    gradient = np.empty_like(params)
    return times(lambda: ours(params, gradient), lambda: reference(params, gradient), "ms", repeats)
