"""Replay-Adam round by round and as whole simulations, beside Vowpal Wabbit, the C++ reference and other libraries."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks import peers, vw
from benchmarks.data import logistic_bandit
from benchmarks.measure import Row, Skipped, rates
from benchmarks.reference import ReplayReference, library
from o2pl import O2PL
from o2pl.protocols import Floats

ROUNDS = 5000
LEARNED = 0.1  # how far above a uniform choice a peer's mean reward must be


def replay(n_actions: int) -> O2PL:
    return O2PL(n_actions, policy="linear", schedule="replay", random_state=0)


def our_loop(contexts: Floats, rewards: list[list[float]]) -> None:
    learner = replay(len(rewards[0]))
    for context, row in zip(contexts, rewards, strict=True):
        action, propensity = learner.act(context)
        learner.update(context, action, row[action], propensity)


def our_run(contexts: Floats, rewards: Floats) -> None:
    replay(rewards.shape[1]).run((contexts, rewards))


def loop(d: int, n_actions: int, text_ahead: bool = False, rounds: int = ROUNDS) -> Row:
    """Against VW's Python loop. VW reads text; with `text_ahead` contexts are made text before the clock starts."""
    contexts, table = logistic_bandit(rounds, d, n_actions)
    rewards = table.tolist()
    theirs: Any = vw.context_texts(contexts) if text_ahead else contexts
    return rates(lambda: our_loop(contexts, rewards), lambda: vw.python_loop(theirs, rewards), rounds, "rounds/s")


def loop_reference(d: int, n_actions: int, rounds: int = 4 * ROUNDS) -> Row:
    """Against the C++ reference called every round."""
    library()
    contexts, table = logistic_bandit(rounds, d, n_actions)
    rewards = table.tolist()
    return rates(
        lambda: our_loop(contexts, rewards),
        lambda: ReplayReference(d, n_actions).loop(contexts, rewards),
        rounds,
        "rounds/s",
    )


def peer(name: str, task: str = "loop", d: int = 20, n_actions: int = 5, rounds: int = ROUNDS) -> Row:
    """Against another library: its learner called every round, or (`drive`) its own driver beside `O2PL.run`.

    A loop that has learned nothing would be no peer.
    """
    contexts, table = logistic_bandit(rounds, d, n_actions)
    rewards = table.tolist()
    with peers.Child(name, contexts=contexts, rewards=table) as child:
        theirs = child.ask(task, rounds=rounds)["mean"]
        if theirs < table.mean() + LEARNED:
            raise Skipped(f"{name} has not learned: mean reward {theirs:.3f}, uniform {table.mean():.3f}")
        row = rates(
            (lambda: our_loop(contexts, rewards)) if task == "loop" else (lambda: our_run(contexts, table)),
            lambda: child.seconds(task, rounds=rounds),
            rounds,
            "rounds/s",
            repeats=5,
        )
    ours = replay(n_actions).run((contexts, table)).mean_reward
    note = f"Mean reward over {rounds:,} rounds: {name} {theirs:.3f}, o2pl {ours:.3f}, uniform {table.mean():.3f}."
    return row._replace(note=note)


def run(d: int, n_actions: int, cpu: bool = False, one_core: bool = False, rounds: int = 20 * ROUNDS) -> Row:
    """Against VW's own driver on a prepared log file.

    The driver parses in a second thread. On two free cores the threads wait for each other, and it takes twice the CPU
    time that it takes on one core: `cpu` is unfair to it, `one_core` is what it can do.
    """
    if one_core and not hasattr(os, "sched_setaffinity"):
        raise Skipped("this system does not let a process choose its core")
    contexts, rewards = logistic_bandit(rounds, d, n_actions)
    clock, unit = (time.process_time, "rounds/CPU s") if cpu else (time.perf_counter, "rounds/s")
    with tempfile.TemporaryDirectory() as folder:
        path = vw.log_file(vw.context_texts(contexts), rewards, folder)
        allowed = os.sched_getaffinity(0) if one_core else set()
        if one_core:
            os.sched_setaffinity(0, {max(allowed)})  # threads that start from here on stay there too
        try:
            return rates(
                lambda: our_run(contexts, rewards), lambda: vw.driver(path), rounds, unit, repeats=5, clock=clock
            )
        finally:
            if one_core:
                os.sched_setaffinity(0, allowed)


def run_reference(d: int, n_actions: int, rounds: int = 20 * ROUNDS) -> Row:
    """Against the C++ reference, one call for all rounds."""
    library()
    contexts, rewards = logistic_bandit(rounds, d, n_actions)
    return rates(
        lambda: our_run(contexts, rewards),
        lambda: ReplayReference(d, n_actions).run(contexts, rewards),
        rounds,
        "rounds/s",
    )


def act_latency(decisions: int = 2000) -> Row:
    """Against VW's parse and predict."""
    contexts, rewards = logistic_bandit(ROUNDS, 64, 10)
    learner = replay(10)
    learner.run((contexts, rewards))
    predict = vw.Predictor(vw.context_texts(contexts[:1])[0], 10)

    def repeat(task: Callable[[], Any]) -> Callable[[], None]:
        return lambda: [task() for _ in range(decisions)].clear()

    return rates(repeat(lambda: learner.act(contexts[0])), repeat(predict), decisions, "decisions/s")
