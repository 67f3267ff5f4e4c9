"""A user and ten items as dictionaries: a loop from Python, and one decision, beside Vowpal Wabbit on their text."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import vw
from benchmarks.measure import Row, of_pairs, played
from benchmarks.rounds import where
from o2pl import Bandit

ITEMS = 10
USER, ITEM = {"segment": 8, "device": 4, "city": 200}, {"name": 300, "kind": 12, "maker": 40}  # words of each field
Side = dict[str, Any]
Rounds = tuple[list[tuple[Side, list[Side]]], list[list[float]]]


def item_bandit(rounds: int, seed: int = 0) -> Rounds:
    """Users and items of three words and a number each; rewards in {0, 1}, logistic in items and in their users."""
    generator = np.random.default_rng(seed)
    effects = {field: generator.normal(size=words) for field, words in ITEM.items()}
    tastes = generator.normal(size=(USER["segment"], ITEM["kind"]))
    of_users = {field: generator.integers(words, size=rounds) for field, words in USER.items()}
    of_items = {field: generator.integers(words, size=(rounds, ITEMS)) for field, words in ITEM.items()}
    ages, prices = generator.normal(size=rounds).round(3), generator.normal(size=(rounds, ITEMS)).round(3)
    logits = sum(effects[field][drawn] for field, drawn in of_items.items())
    logits = logits + tastes[of_users["segment"][:, None], of_items["kind"]] - prices * ages[:, None] - 1
    rewards = (generator.random((rounds, ITEMS)) < 1 / (1 + np.exp(-logits))).astype(float)

    def side(fields: dict[str, Any], number: str, value: float) -> Side:
        return {**{field: f"{field[0]}{word}" for field, word in fields.items()}, number: value}

    contexts = [
        (
            side({field: drawn[t] for field, drawn in of_users.items()}, "age", float(ages[t])),
            [
                side({field: drawn[t, k] for field, drawn in of_items.items()}, "price", float(prices[t, k]))
                for k in range(ITEMS)
            ],
        )
        for t in range(rounds)
    ]
    return contexts, rewards.tolist()


def learner(seed: int) -> Bandit:
    return Bandit(policy="hashed actionwise", random_state=seed)


def our_loop(made: Bandit, contexts: list[tuple[Side, list[Side]]], rewards: list[list[float]]) -> float:
    total = 0.0
    for (user, items), row in zip(contexts, rewards, strict=True):
        decision = made.act(user, items)
        reward = row[decision.action]
        made.update(decision, reward)
        total += reward
    return total / len(rewards)


def lines(user: Side, items: list[Side]) -> list[str]:
    """As VW reads it."""
    return [f"shared |s {_words(user)}", *(f"|a {_words(item)}" for item in items)]


def _words(side: Side) -> str:
    return " ".join(f"{key}={value}" if isinstance(value, str) else f"{key}:{value}" for key, value in side.items())


def vw_loop(contexts: list[tuple[Side, list[Side]]], rewards: list[list[float]], seed: int) -> float:
    from vowpalwabbit import LabelType, Workspace

    made, total = Workspace(f"{vw.GREEDY} --quiet"), 0.0
    uniforms = np.random.default_rng(seed).random(len(contexts)).tolist()
    for one, row, uniform in zip(contexts, rewards, uniforms, strict=True):
        total += vw.one_round(made, LabelType.CONTEXTUAL_BANDIT, lines(*one), 1, row, uniform)
    made.finish()
    return total / len(contexts)


def loop(rounds: int = 5000, repeats: int = 7) -> Row:
    row = played(
        lambda seed: item_bandit(rounds, seed),
        lambda world, seed: our_loop(learner(seed), *world),
        lambda world, seed: vw_loop(*world, seed),
        rounds,
        repeats,
    )
    contexts, rewards = item_bandit(rounds)
    made = learner(0)

    class Alone:
        """`act` of one context, for `where`."""

        def act(self, context: tuple[Side, list[Side]]) -> Any:
            self._decision = made.act(*context)
            return self._decision

        def update(self, _context: Any, _action: Any, reward: float, _propensity: float) -> None:
            made.update(self._decision, reward)

    return row._replace(note=where(Alone(), contexts, lambda t, action: rewards[t][action]))


def act(learn: int = 2000, decisions: int = 2000, repeats: int = 7) -> Row:
    """µs of one decision after `learn` rounds: the median over `decisions` new ones. VW makes a text of each."""
    from vowpalwabbit import LabelType, Workspace

    contexts, rewards = item_bandit(learn + decisions)
    made, theirs = learner(0), Workspace(f"{vw.GREEDY} --quiet")
    earned = our_loop(made, contexts[:learn], rewards[:learn]), 0.0
    uniforms, label = np.random.default_rng(0).random(learn).tolist(), LabelType.CONTEXTUAL_BANDIT
    paid = [
        vw.one_round(theirs, label, lines(*one), 1, row, uniform)
        for one, row, uniform in zip(contexts[:learn], rewards[:learn], uniforms, strict=True)
    ]

    def decide(user: Side, items: list[Side]) -> None:
        example = theirs.parse(lines(user, items), label)
        theirs.predict(example)
        theirs.finish_example(example)

    def median(by: Callable[[Side, list[Side]], object]) -> float:
        taken = []
        for user, items in contexts[learn:]:
            start = time.perf_counter_ns()
            by(user, items)
            taken.append(time.perf_counter_ns() - start)
        return statistics.median(taken) / 1e3

    for by in (made.act, decide):
        median(by)
    row = of_pairs([(median(made.act), median(decide)) for _ in range(repeats)], "µs")
    theirs.finish()
    return row._replace(rewards=(earned[0], statistics.fmean(paid)))
