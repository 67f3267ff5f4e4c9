"""Simulation loop of a learner in an environment, and its regret."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.learners.base import Run
from o2pl.protocols import Floats, Learner, Rounds


def play(learner: Learner, rounds: Rounds, n: int | None = None, *, every_round: bool = False) -> Run:
    """Play the first n rounds (default: all), one decision and one update each.

    A learner with a `run` method makes the same decisions there, faster. With `every_round` it is called once per round
    like other learners, to compare computing times.
    """
    contexts = rounds.contexts
    total = len(contexts) if n is None else n
    if not 0 < total <= len(contexts):
        raise InvalidInput(f"n: found {n}, expected a number of rounds from 1 to {len(contexts)}")
    if hasattr(learner, "run") and not every_round:
        done: Run = learner.run((contexts, rounds.rewards), total)
        return done
    actions: list[Any] = []
    rewards, propensities = np.empty(total), np.empty(total)
    for t in range(total):
        decision = learner.act(contexts[t])
        rewards[t] = rounds.rewards(np.array([t]), np.array([decision.action]))[0]
        propensities[t] = decision.propensity
        actions.append(decision.action)
        learner.update(contexts[t], decision.action, float(rewards[t]), decision.propensity)
    return Run(np.array(actions), rewards, propensities)


def play_timed(learner: Any, rounds: Any, n: int) -> tuple[Floats, float]:
    """Play the first n rounds one by one; return the actions, and the CPU seconds of `act` and `update`."""
    actions, seconds, clock = np.empty(n), 0.0, time.process_time
    for t, context in enumerate(rounds.contexts[:n]):
        start = clock()
        action, propensity = learner.act(context)
        seconds += clock() - start
        reward = float(rounds.rewards(np.array([t]), np.array([action]))[0])
        start = clock()
        learner.update(context, action, reward, propensity)
        seconds += clock() - start
        actions[t] = action
    return actions, seconds


def regret(run: Run, rounds: Rounds) -> Floats:
    """Return the cumulative regret Σ_{s ≤ t} (expected reward of the best action - that of the played one). [n]"""
    rows = np.arange(len(run.actions))
    return np.cumsum(rounds.best[rows] - rounds.expected(rows, run.actions))
