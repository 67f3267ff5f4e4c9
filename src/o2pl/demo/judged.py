"""Step 2: off-policy evaluation of other policies from a learner's log, compared with the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from o2pl.demo.online import DIGITS
from o2pl.evaluation.evaluate import evaluate
from o2pl.learners import Bandit
from o2pl.protocols import Floats, Ints
from o2pl.simulation.worlds.classification import classification_rewards
from o2pl.simulation.worlds.logged import logistic_logger
from o2pl.simulation.worlds.rounds import TableRounds

EXPLORATION = 0.05  # fraction of uniform decisions, so that the log can evaluate very different policies
_LABELLED = {"classifier A": 60, "classifier B": 15}  # training rows of each; not in the log


@dataclass(frozen=True)
class JudgedPolicy:
    """One policy: the estimate, its interval, and its true mean reward on the same rows."""

    name: str
    value: float
    low: float
    high: float
    truth: float

    @property
    def holds(self) -> bool:
        return self.low <= self.truth <= self.high


@dataclass(frozen=True, eq=False)
class OldRows:
    """What the log of a learner says of other policies."""

    rows: int
    earned: float  # mean reward of the learner that made the log, exploration included
    policies: tuple[JudgedPolicy, ...]
    verdict: str  # the verdict of `evaluate`


def judge(rounds: int, say: Callable[[str], None], seed: int = 0) -> OldRows:
    data = DIGITS.load()
    order = np.random.default_rng(seed).permutation(len(data))
    labelled, met = np.split(order, [max(_LABELLED.values())])
    met = met[:rounds]
    say(f"Bandit(exploration={EXPLORATION}) writes a log")
    means = classification_rewards(data.labels[met], len(data.classes), 0.0)
    learner = Bandit(len(data.classes), exploration=EXPLORATION, random_state=seed)
    run = learner.run(_judged_pair(TableRounds(data.contexts[met], means, means)))
    others: dict[str, Callable[[Floats], Ints]] = {}
    for name, rows in _LABELLED.items():
        classify = logistic_logger(data, labelled[:rows])
        others[name] = lambda contexts, classify=classify: classify(contexts).argmax(axis=1)  # type: ignore[misc]
    say("evaluate estimates other policies from it")
    found = evaluate(learner.log_, {**others, "uniform": "uniform"})
    contexts = data.contexts[met]
    truth = {name: float(means[np.arange(len(met)), policy(contexts)].mean()) for name, policy in others.items()}
    truth["uniform"] = float(means.mean())
    policies = tuple(
        JudgedPolicy(one.name, one.value, one.low, one.high, truth[one.name]) for one in found.overall.candidates
    )
    return OldRows(len(met), float(run.rewards.mean()), policies, found.verdict)


def _judged_pair(rounds: TableRounds) -> tuple[Floats, Floats]:
    return rounds.contexts, rounds.table
