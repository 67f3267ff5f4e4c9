"""Varying action sets and real-valued actions: every round beside Vowpal Wabbit, batches beside C++."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Row, rates, times
from benchmarks.reference import aligned, at, build
from benchmarks.vw import one_round
from o2pl import O2PL, GaussianO2PL
from o2pl.interactions import Interactions
from o2pl.learners.kernels.actionwise import ActionWiseValue
from o2pl.learners.kernels.gaussian import GaussianValue
from o2pl.learners.settings import Settings
from o2pl.policies.gaussian import Gaussian
from o2pl.protocols import Floats, ValueAndGradient
from o2pl.rows import ActionSets

SOURCE = Path(__file__).with_name("reference_policies.cpp")
SETTINGS = Settings(penalty=0.1, baseline="mean", l2=0.1)
Sets = tuple[list[Floats], list[list[float]]]
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


def linear_targets(rounds: int, d: int = 20, seed: int = 0) -> tuple[Floats, list[float]]:
    """Contexts and the action that pays 1 in each; others pay less by their distance, down to 0."""
    generator = np.random.default_rng(seed)
    contexts = generator.normal(size=(rounds, d)).astype(np.float32)
    return contexts, (contexts @ generator.normal(size=d) / np.sqrt(d)).tolist()


def our_sets_loop(sets: list[Floats], rewards: list[list[float]], schedule: str = "replay") -> float:
    learner, total = O2PL(policy="actionwise", schedule=schedule, random_state=0), 0.0
    for one, row in zip(sets, rewards, strict=True):
        action, propensity = learner.act(one)
        learner.update(one, action, row[action], propensity)
        total += row[action]
    return total / len(sets)


def vw_sets_loop(sets: list[Floats], rewards: list[list[float]], seed: int = 0) -> float:
    """--cb_explore_adf with the actions' features as text."""
    from vowpalwabbit import LabelType, Workspace

    vw, label, total = Workspace("--cb_explore_adf --epsilon 0.05 --quiet"), LabelType.CONTEXTUAL_BANDIT, 0.0
    uniforms = np.random.default_rng(seed).random(len(sets)).tolist()
    for one, row, uniform in zip(sets, rewards, uniforms, strict=True):
        total += one_round(vw, label, ["|a " + _text(action) for action in one], 0, row, uniform)
    vw.finish()
    return total / len(sets)


def our_rows_loop(contexts: Floats, targets: list[float], schedule: str = "replay") -> float:
    learner, total = GaussianO2PL(schedule=schedule, random_state=0), 0.0
    for context, target in zip(contexts, targets, strict=True):
        action, density = learner.act(context)
        reward = max(0.0, 1 - abs(action - target))
        learner.update(context, action, reward, density)
        total += reward
    return total / len(contexts)


def vw_rows_loop(contexts: Floats, targets: list[float]) -> float:
    """--cats: a tree over 16 intervals of the action, smoothed."""
    from vowpalwabbit import LabelType, Workspace

    vw = Workspace("--cats 16 --bandwidth 0.5 --min_value -4 --max_value 4 --epsilon 0.05 --quiet")
    label, total = LabelType.CONTINUOUS, 0.0
    for context, target in zip(contexts, targets, strict=True):
        text = "|s " + _text(context)
        example = vw.parse(text, label)
        action, density = vw.predict(example)
        vw.finish_example(example)
        reward = max(0.0, 1 - abs(action - target))
        total += reward
        example = vw.parse(f"ca {action}:{-reward}:{density} {text}", label)
        vw.learn(example)
        vw.finish_example(example)
    vw.finish()
    return total / len(contexts)


def _text(row: Floats) -> str:
    return " ".join(f"{i}:{x:.6g}" for i, x in enumerate(row.tolist()))


def loop_actionwise(schedule: str, rounds: int = 3000) -> Row:
    world = logistic_sets(rounds)
    return rates(lambda: our_sets_loop(*world, schedule), lambda: vw_sets_loop(*world), rounds, "rounds/s", repeats=5)


def loop_gaussian(schedule: str, rounds: int = 3000) -> Row:
    world = linear_targets(rounds)
    return rates(lambda: our_rows_loop(*world, schedule), lambda: vw_rows_loop(*world), rounds, "rounds/s", repeats=5)


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
    sets = ActionSets(generator.standard_normal((int(offsets[-1]), d), np.float32), offsets)
    log = Interactions(sets, generator.integers(sizes), -(generator.random(n) < 0.4).astype(np.float64), 1 / sizes)
    found = SETTINGS.objective(log)
    arrays = aligned(sets.values.T), offsets
    columns = found.actions, found.residuals, 1 / found.propensities
    reference = _reference(library().actionwise, d, (), arrays, n, columns)
    return ActionWiseValue(sets, found, SETTINGS.l2), reference, 0.3 * generator.standard_normal(d)


def both_gaussian(n: int, d: int = 20, seed: int = 0) -> Pair:
    """Ours and the reference on a log of a standard normal logger, and parameters to evaluate both at."""
    generator = np.random.default_rng(seed)
    features, actions = generator.standard_normal((n, d), np.float32), generator.standard_normal(n)
    density = np.exp(-0.5 * actions**2) / np.sqrt(2 * np.pi)
    found = SETTINGS.objective(Interactions(features, actions, -generator.random(n), density))
    policy = Gaussian(0.1, 0.7)
    columns = actions - policy.centre, found.residuals, np.log(density)
    reference = _reference(library().gaussian, d, (policy.scale,), (aligned(features.T),), n, columns)
    return GaussianValue(policy, features, found, SETTINGS.l2), reference, 0.1 * generator.standard_normal(d)


def _reference(function: Any, d: int, scale: Any, arrays: Any, n: int, columns: Any) -> ValueAndGradient:
    phi = SETTINGS.phi(n)
    penalty = np.array([phi.alpha, phi.t, phi.log_inv_delta, phi.scale])

    def value_and_gradient(params: Floats) -> tuple[float, Floats]:
        gradient = np.empty_like(params)
        pointers, rest = map(at, arrays), map(at, (*columns, penalty))
        value = function(at(params), d, *scale, *pointers, n, *rest, SETTINGS.l2 / n, at(gradient))
        return float(value), gradient

    return value_and_gradient


def batch(both: Callable[[int], Pair], rows: int = 10**6) -> Row:
    """Milliseconds of one evaluation on one thread."""
    ours, reference, params = both(rows)
    return times(lambda: ours(params), lambda: reference(params), "ms", repeats=9)
