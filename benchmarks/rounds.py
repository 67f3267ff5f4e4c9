"""A learner called every round from Python, and whole simulations, beside Vowpal Wabbit, the C++ reference and others.

Every function takes `make`, which makes the learner from the number of actions and a seed: `replay` here, and
`default.learner`.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks import peers, vw
from benchmarks.data import World, logistic_bandit, logistic_world
from benchmarks.measure import Row, Skipped, of_pairs, played, rates
from benchmarks.reference import ReplayReference, library
from o2pl import O2PL

ROUNDS = 5000
LEARNED = 0.1  # how far above a uniform choice a peer's mean reward must be
Make = Callable[[int, int], Any]  # (number of actions, seed) -> learner


def replay(n_actions: int, seed: int) -> O2PL:
    return O2PL(n_actions, policy="linear", schedule="replay", random_state=seed)


def our_loop(learner: Any, contexts: Iterable[Any], rewards: list[list[float]]) -> float:
    """One call to `act` and one to `update` for every context; the mean reward."""
    total = 0.0
    for context, row in zip(contexts, rewards, strict=True):
        action, propensity = learner.act(context)
        reward = row[action]
        learner.update(context, action, reward, propensity)
        total += reward
    return total / len(rewards)


def where(learner: Any, contexts: Iterable[Any], reward: Callable[[int, Any], float]) -> str:
    """Where the time of a loop goes, from one more run that is timed call by call."""
    act, update = [], []
    for t, context in enumerate(contexts):
        start = time.perf_counter_ns()
        action, propensity = learner.act(context)
        decided = time.perf_counter_ns()
        paid = reward(t, action)
        told = time.perf_counter_ns()
        learner.update(context, action, paid, propensity)
        update.append((time.perf_counter_ns() - told) / 1e3)
        act.append((decided - start) / 1e3)
    appending = statistics.median(update)
    whole = statistics.fmean(act) + statistics.fmean(update)
    return (
        f"Of the {whole:.1f} µs of a round, `act` takes {statistics.fmean(act):.1f} µs, an `update` that only adds a "
        f"row {appending:.1f} µs, and re-learning, shared among all rounds, {statistics.fmean(update) - appending:.1f} "
        "µs (one run, timed call by call)."
    )


def loop(
    make: Make,
    d: int,
    n_actions: int,
    text_ahead: bool = False,
    options: str = vw.GREEDY,
    rounds: int = ROUNDS,
    repeats: int = 7,
) -> Row:
    """Against VW's Python loop. VW reads text; with `text_ahead` contexts are made text before the clock starts."""
    world = logistic_world(rounds, d, n_actions)

    def both(seed: int) -> tuple[World, Any]:
        here = world(seed)
        return here, vw.context_texts(here.contexts) if text_ahead else here.contexts

    row = played(
        both,
        lambda given, seed: our_loop(make(n_actions, seed), given[0].contexts, given[0].rewards),
        lambda given, seed: vw.python_loop(given[1], given[0].rewards, seed, options),
        rounds,
        repeats,
    )
    here = world(0)
    return row._replace(note=where(make(n_actions, 0), here.contexts, lambda t, action: here.rewards[t][action]))


def act(make: Make, d: int, n_actions: int, learn: int = 2000, decisions: int = 2000, repeats: int = 7) -> Row:
    """µs of one decision after `learn` rounds: the median over `decisions` new contexts. VW makes a text of each."""
    contexts, table = logistic_bandit(learn + decisions, d, n_actions)
    rewards = table[:learn].tolist()
    learner, theirs = make(n_actions, 0), vw.Loop(n_actions)
    earned = our_loop(learner, contexts[:learn], rewards), theirs.play(contexts[:learn], rewards)

    def median(decide: Callable[[Any], Any]) -> float:
        taken = []
        for context in contexts[learn:]:
            start = time.perf_counter_ns()
            decide(context)
            taken.append(time.perf_counter_ns() - start)
        return statistics.median(taken) / 1e3

    for decide in (learner.act, theirs.decide):
        median(decide)
    row = of_pairs([(median(learner.act), median(theirs.decide)) for _ in range(repeats)], "µs")
    theirs.finish()
    return row._replace(rewards=earned)


def loop_reference(d: int, n_actions: int, rounds: int = ROUNDS, repeats: int = 7) -> Row:
    """Replay against the C++ reference called every round."""
    library()
    return played(
        logistic_world(rounds, d, n_actions),
        lambda here, seed: our_loop(replay(n_actions, seed), here.contexts, here.rewards),
        lambda here, seed: ReplayReference(d, n_actions, seed).loop(here.contexts, here.rewards),
        rounds,
        repeats,
    )


def peer(
    make: Make,
    name: str,
    task: str = "loop",
    d: int = 20,
    n_actions: int = 5,
    rounds: int = ROUNDS,
    repeats: int = 5,
    learned: float = LEARNED,
) -> Row:
    """Against another library: its learner called every round, or (`drive`) its own driver beside our `run`.

    A loop that has learned nothing would be no peer.
    """
    here = logistic_world(rounds, d, n_actions)(0)
    uniform = here.table.mean()

    def ours(here: World, seed: int) -> float:
        learner = make(n_actions, seed)
        if task == "loop":
            return our_loop(learner, here.contexts, here.rewards)
        return float(learner.run((here.contexts, here.table)).mean_reward)

    with peers.Child(name, contexts=here.contexts, rewards=here.table) as child:
        mean = child.play(task, rounds=rounds).mean
        if mean < uniform + learned:
            raise Skipped(f"{name} has not learned: mean reward {mean:.3f}, uniform {uniform:.3f}")
        return played(lambda _: here, ours, lambda *_: child.play(task, rounds=rounds), rounds, repeats)


def run(
    d: int, n_actions: int, cpu: bool = False, one_core: bool = False, rounds: int = 20 * ROUNDS, repeats: int = 5
) -> Row:
    """Replay's `run` against VW's own driver on a prepared log file.

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
            return played(
                lambda _: None,
                lambda _, seed: float(replay(n_actions, seed).run((contexts, rewards)).mean_reward),
                lambda *_: vw.driver(path, rounds),
                rounds,
                repeats,
                clock,
                unit,
            )
        finally:
            if one_core:
                os.sched_setaffinity(0, allowed)


def run_reference(d: int, n_actions: int, rounds: int = 20 * ROUNDS, repeats: int = 7) -> Row:
    """Replay against the C++ reference, one call for all rounds."""
    library()

    def theirs(here: World, seed: int) -> float:
        actions, _ = ReplayReference(d, n_actions, seed).run(here.contexts, here.table)
        return float(here.table[np.arange(rounds), actions].mean())

    return played(
        logistic_world(rounds, d, n_actions),
        lambda here, seed: float(replay(n_actions, seed).run((here.contexts, here.table)).mean_reward),
        theirs,
        rounds,
        repeats,
    )


def act_latency(decisions: int = 2000, rounds: int = ROUNDS, repeats: int = 7) -> Row:
    """Replay against VW's parse and predict, the text made beforehand."""
    contexts, rewards = logistic_bandit(rounds, 64, 10)
    learner, theirs = replay(10, 0), vw.Loop(10)
    text, table = vw.context_text(contexts[0]), rewards.tolist()
    earned = float(learner.run((contexts, rewards)).mean_reward), theirs.play(contexts, table)

    def repeat(decide: Callable[[Any], Any], context: Any) -> Callable[[], None]:
        return lambda: [decide(context) for _ in range(decisions)].clear()

    ours = repeat(learner.act, contexts[0])
    row = rates(ours, repeat(theirs.decide, text), decisions, "decisions/s", repeats)
    theirs.finish()
    return row._replace(rewards=earned)
