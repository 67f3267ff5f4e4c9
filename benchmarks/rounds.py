"""A learner called every round from Python, beside Vowpal Wabbit and other libraries.

Every function takes `make`, which makes the learner from the number of actions and a seed, as `default.learner`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks import peers, vw
from benchmarks.data import World, logistic_bandit, logistic_world
from benchmarks.measure import Row, Skipped, of_pairs, played

ROUNDS = 5000
LEARNED = 0.1  # how far above a uniform choice a peer's mean reward must be
Make = Callable[[int, int], Any]  # (number of actions, seed) -> learner


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
    rounds: int = ROUNDS,
    repeats: int = 7,
) -> Row:
    """Against VW's Python loop, which makes a text of each context."""
    world = logistic_world(rounds, d, n_actions)
    row = played(
        world,
        lambda here, seed: our_loop(make(n_actions, seed), here.contexts, here.rewards),
        lambda here, seed: vw.python_loop(here.contexts, here.rewards, seed),
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


def many(make: Make, d: int, n_actions: int, learn: int = 2000, decisions: int = 100_000, repeats: int = 9) -> Row:
    """CPU time of deciding for many contexts in one call, beside those of their probabilities alone."""
    contexts, table = logistic_bandit(learn + decisions, d, n_actions)
    learner, new = make(n_actions, 0), contexts[learn:]
    our_loop(learner, contexts[:learn], table[:learn].tolist())

    def taken(call: Callable[[Any], Any]) -> float:
        start = time.process_time()
        call(new)
        return time.process_time() - start

    for call in (learner.act_many, learner.predict_proba):
        taken(call)
    return of_pairs([(taken(learner.act_many), taken(learner.predict_proba)) for _ in range(repeats)], "CPU s")


def peer(
    make: Make,
    name: str,
    d: int = 20,
    n_actions: int = 5,
    rounds: int = ROUNDS,
    repeats: int = 5,
    learned: float = LEARNED,
) -> Row:
    """Against another library: its learner called every round.

    A loop that has learned nothing would be no peer.
    """
    here = logistic_world(rounds, d, n_actions)(0)
    uniform = here.table.mean()

    def ours(here: World, seed: int) -> float:
        return our_loop(make(n_actions, seed), here.contexts, here.rewards)

    with peers.Child(name, contexts=here.contexts, rewards=here.table) as child:
        mean = child.play("loop", rounds=rounds).mean
        if mean < uniform + learned:
            raise Skipped(f"{name} has not learned: mean reward {mean:.3f}, uniform {uniform:.3f}")
        return played(lambda _: here, ours, lambda *_: child.play("loop", rounds=rounds), rounds, repeats)
