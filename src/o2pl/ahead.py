"""Compilation ahead of the first use."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from o2pl._core import draw_one
from o2pl.evaluation.evaluate import evaluate
from o2pl.learners import O2PL, Bandit, ContinuousBandit, Decider, GaussianO2PL
from o2pl.learners.set_texts import SetTexts

_LOG_ROWS = 300


def warm_up() -> float:
    """Compile the kernels that the default settings need, and cache them on disk.

    This covers `Bandit`, `O2PL` with `schedule="geometric"` and `"replay"` (both with numeric rows, dictionaries, and
    action sets of either), `ContinuousBandit`, `GaussianO2PL` and `evaluate`. Other settings compile additional kernels
    at their first use.

    Returns
    -------
    float
        Seconds taken; close to 0 if everything is cached already.
    """
    start = time.perf_counter()
    generator = np.random.default_rng(0)
    contexts = generator.normal(size=(_LOG_ROWS, 3))
    rewards = (contexts > 0).astype(float)
    actions = generator.integers(3, size=_LOG_ROWS)
    log = (contexts, actions, rewards[np.arange(_LOG_ROWS), actions], np.full(_LOG_ROWS, 1 / 3))
    learners = (
        Bandit(3, random_state=0),
        *(O2PL(3, policy="linear", schedule=schedule, random_state=0) for schedule in ("replay", "geometric")),
        O2PL(3, random_state=0),
    )
    for learner in learners:
        learner.run((contexts, rewards))
        for context in (*contexts[:20], *contexts[:20].astype(np.float32)):
            learner.update(context, (decision := learner.act(context)).action, 1.0, decision.propensity)
        learner.partial_fit(*log)
        learner.fit(*log)
        learner.score(*log)
    wide = generator.normal(size=(_LOG_ROWS, 40))  # wide enough that columns are projected before products are formed
    for kind in (Bandit, O2PL):
        kind(3, random_state=0).run((wide, rewards))
    for at_any_time in (False, True):
        evaluate(learner, learner, baseline="uniform", at_any_time=at_any_time)
    for kind in (Bandit, O2PL):
        _warm_up_items(kind, generator)
    for prices in (ContinuousBandit((-9, 9), random_state=0), GaussianO2PL(random_state=0)):
        for context in (*contexts, *contexts[:20].astype(np.float32)):
            prices.update(context, (price := prices.act(context)).action, 1.0, price.propensity)
        prices.fit(contexts, generator.normal(size=_LOG_ROWS), rewards[:, 0], np.full(_LOG_ROWS, 0.4))
        prices.predict(contexts)
        prices.run((contexts, lambda rows, actions: np.zeros(len(rows))), 20)
    return time.perf_counter() - start


def _warm_up_items(kind: Any, generator: np.random.Generator) -> None:
    """Warm up dictionaries, users with items, and action sets of rows and of dictionaries: act, update, fit."""
    words = [{"id": f"u{k % 7}", "age": float(k), "likes": ["red", "blue"]} for k in range(_LOG_ROWS)]
    sets = [generator.normal(size=(2 + k % 3, 3)) for k in range(_LOG_ROWS)]
    pages = [({"user": f"u{k % 7}"}, [{"kind": letter} for letter in "abc"[: 2 + k % 2]]) for k in range(_LOG_ROWS)]
    offers = [(generator.normal(size=2), items) for items in sets]
    kinds = (("hashed", words), ("actionwise", sets), ("items", offers), ("hashed actionwise", pages))
    for policy, contexts in kinds:
        learner = kind(3 if policy == "hashed" else None, policy=policy, random_state=0)
        for context in contexts:
            learner.update(learner.act(context), float(generator.random() < 0.5))
        learner.fit(contexts, np.zeros(_LOG_ROWS, int), generator.random(_LOG_ROWS), np.full(_LOG_ROWS, 0.5))
        learner.predict(contexts)
        _warm_up_service(learner.snapshot(), policy)


def _warm_up_service(decider: Decider, policy: str) -> None:
    """Warm up the service's decisions: JSON text of action sets, and of a fixed number of actions."""
    if policy == "hashed actionwise":
        for texts in (SetTexts(), SetTexts(decider)):
            draw_one(texts.probabilities(b'{"user":"u1","_multi":[{"kind":"a"},{"kind":"b"}]}', 2), 0.5)
    elif policy == "hashed":
        decider.among({"id": "u1"}, np.arange(2))
