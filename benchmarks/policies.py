"""Varying action sets and real-valued actions: every round beside Vowpal Wabbit, batches beside C++."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.internals import Outcomes, Terms, actionwise_value, gaussian_value, terms
from benchmarks.measure import Row, played, times
from benchmarks.reference import aligned, at, build
from benchmarks.rounds import our_loop, where
from benchmarks.vw import one_round
from o2pl import O2PL, GaussianO2PL
from o2pl.protocols import Floats, ValueAndGradient

SOURCE = Path(__file__).with_name("reference_policies.cpp")
CATS = "--cats 16 --bandwidth 0.5 --min_value -4 --max_value 4 --epsilon 0.05"
Sets = tuple[list[Floats], list[list[float]]]
Targets = tuple[Floats, list[float]]
Pair = tuple[ValueAndGradient, ValueAndGradient, Floats]


# -- every round from Python


def logistic_sets(rounds: int, d: int = 20, seed: int = 0) -> Sets:
    """Sets of 5 to 20 actions with d features each, Bernoulli rewards with a logistic mean."""
    generator = np.random.default_rng(seed)
    weights = generator.normal(size=d) * 2 / np.sqrt(d)
    sets = [generator.normal(size=(k, d)).astype(np.float32) for k in generator.integers(5, 21, size=rounds)]
    return sets, [
        (generator.random(len(one)) < 1 / (1 + np.exp(-one @ weights))).astype(float).tolist() for one in sets
    ]


def linear_targets(rounds: int, d: int = 20, seed: int = 0) -> Targets:
    """Contexts and the action that pays 1 in each; others pay less by their distance, down to 0."""
    generator = np.random.default_rng(seed)
    contexts = generator.normal(size=(rounds, d)).astype(np.float32)
    return contexts, (contexts @ generator.normal(size=d) / np.sqrt(d)).tolist()


def our_sets_loop(sets: list[Floats], rewards: list[list[float]], seed: int = 0) -> float:
    return our_loop(O2PL(policy="actionwise", random_state=seed), sets, rewards)


def vw_sets_loop(sets: list[Floats], rewards: list[list[float]], seed: int = 0) -> float:
    """--cb_explore_adf with the actions' features as text."""
    from vowpalwabbit import LabelType, Workspace

    vw, label, total = Workspace("--cb_explore_adf --epsilon 0 --quiet"), LabelType.CONTEXTUAL_BANDIT, 0.0
    uniforms = np.random.default_rng(seed).random(len(sets)).tolist()
    for one, row, uniform in zip(sets, rewards, uniforms, strict=True):
        total += one_round(vw, label, ["|a " + _text(action) for action in one], 0, row, uniform)
    vw.finish()
    return total / len(sets)


def closeness(action: float, target: float) -> float:
    return max(0.0, 1 - abs(action - target))


def our_rows_loop(contexts: Floats, targets: list[float], seed: int = 0) -> float:
    learner, total = GaussianO2PL(random_state=seed), 0.0
    for context, target in zip(contexts, targets, strict=True):
        action, density = learner.act(context)
        reward = closeness(action, target)
        learner.update(context, action, reward, density)
        total += reward
    return total / len(contexts)


def vw_rows_loop(contexts: Floats, targets: list[float], seed: int = 0) -> float:
    """--cats: a tree over 16 intervals of the action, smoothed. Without ε it fails; it draws the actions itself."""
    from vowpalwabbit import LabelType, Workspace

    vw = Workspace(f"{CATS} --random_seed {seed} --quiet")
    label, total = LabelType.CONTINUOUS, 0.0
    for context, target in zip(contexts, targets, strict=True):
        text = "|s " + _text(context)
        example = vw.parse(text, label)
        action, density = vw.predict(example)
        vw.finish_example(example)
        reward = closeness(action, target)
        total += reward
        example = vw.parse(f"ca {action}:{-reward}:{density} {text}", label)
        vw.learn(example)
        vw.finish_example(example)
    vw.finish()
    return total / len(contexts)


def _text(row: Floats) -> str:
    return " ".join(f"{i}:{x:.6g}" for i, x in enumerate(row.tolist()))


def loop_actionwise(rounds: int = 3000, repeats: int = 7) -> Row:
    return played(
        lambda seed: logistic_sets(rounds, seed=seed),
        lambda world, seed: our_sets_loop(*world, seed),
        lambda world, seed: vw_sets_loop(*world, seed),
        rounds,
        repeats,
    )


def loop_gaussian(rounds: int = 3000, repeats: int = 7) -> Row:
    row = played(
        lambda seed: linear_targets(rounds, seed=seed),
        lambda world, seed: our_rows_loop(*world, seed),
        lambda world, seed: vw_rows_loop(*world, seed),
        rounds,
        repeats,
    )
    contexts, targets = linear_targets(rounds)
    learner = GaussianO2PL(random_state=0)
    return row._replace(note=where(learner, contexts, lambda t, action: closeness(action, targets[t])))


# -- batches


@cache
def library() -> ctypes.CDLL:
    loaded = build(SOURCE)
    pointer, number, count, long = ctypes.c_void_p, ctypes.c_double, ctypes.c_int, ctypes.c_int64
    columns = (pointer, pointer, pointer, pointer, number, pointer)
    loaded.actionwise.restype = loaded.gaussian.restype = number
    loaded.actionwise.argtypes = (pointer, count, pointer, pointer, long, *columns)
    loaded.gaussian.argtypes = (pointer, count, number, pointer, long, *columns)
    return loaded


def both_actionwise(rows: int, d: int = 20, seed: int = 0) -> Pair:
    """Ours and the reference on a log of sets of 5 to 20 actions, `rows` actions in all or a few less; parameters."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(5, 21, size=rows // 5)
    sizes = sizes[: max(1, int(np.searchsorted(np.cumsum(sizes), rows)))]
    n, offsets = len(sizes), np.concatenate([[0], np.cumsum(sizes)])
    items = generator.standard_normal((int(offsets[-1]), d), np.float32)
    came = Outcomes(generator.integers(sizes), (generator.random(n) < 0.4).astype(np.float64), 1 / sizes)
    found = terms(came)
    arrays, columns = (aligned(items.T), offsets), (came.actions, found.residuals, 1 / came.propensities)
    reference = _reference(library().actionwise, d, (), arrays, columns, found)
    return actionwise_value(items, offsets, came), reference, 0.3 * generator.standard_normal(d)


def both_gaussian(n: int, d: int = 20, seed: int = 0) -> Pair:
    """Ours and the reference on a log of a standard normal logger, and parameters to evaluate both at."""
    generator = np.random.default_rng(seed)
    features, actions = generator.standard_normal((n, d), np.float32), generator.standard_normal(n)
    density = np.exp(-0.5 * actions**2) / np.sqrt(2 * np.pi)
    came, centre, scale = Outcomes(actions, generator.random(n), density), 0.1, 0.7
    found = terms(came)
    arrays, columns = (aligned(features.T),), (actions - centre, found.residuals, np.log(density))
    reference = _reference(library().gaussian, d, (scale,), arrays, columns, found)
    return gaussian_value(features, centre, scale, came), reference, 0.1 * generator.standard_normal(d)


def _reference(function: Any, d: int, scale: Any, arrays: Any, columns: Any, found: Terms) -> ValueAndGradient:
    n = len(found.residuals)

    def value_and_gradient(params: Floats) -> tuple[float, Floats]:
        gradient = np.empty_like(params)
        pointers, rest = map(at, arrays), map(at, (*columns, found.penalty))
        value = function(at(params), d, *scale, *pointers, n, *rest, found.shrink, at(gradient))
        return float(value), gradient

    return value_and_gradient


def batch(both: Callable[[int], Pair], rows: int = 10**6, repeats: int = 9) -> Row:
    """Milliseconds of one evaluation on one thread."""
    ours, reference, params = both(rows)
    return times(lambda: ours(params), lambda: reference(params), "ms", repeats)
