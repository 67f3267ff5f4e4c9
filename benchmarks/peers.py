"""Other libraries in the same loop: act and update, one context at a time. Each is used where it can be imported.

All run their disjoint LinUCB (ridge regression per action), the cheapest learner that all have and that uses contexts.
None of them tells the probability of its action. Contexts come as each library wants them: making them so is timed.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import Skipped
from o2pl.protocols import Floats

Act = Callable[[Floats], Any]
Update = Callable[[Floats, Any, float], Any]


class Peer(NamedTuple):
    package: str  # as it is imported
    make: Callable[[Any, int, int], tuple[Act, Update]]  # of the imported package, d, K
    rounds: int  # that take about a second


def mabwiser(package: Any, d: int, n_actions: int) -> tuple[Act, Update]:
    learner = package.MAB(list(range(n_actions)), package.LearningPolicy.LinUCB(alpha=0.2), seed=0)
    learner.fit([0], [0.0], [[0.0] * d])
    return (
        lambda context: learner.predict(context[None]),
        lambda context, action, reward: learner.partial_fit([action], [reward], context[None]),
    )


def river(package: Any, d: int, n_actions: int) -> tuple[Act, Update]:
    learner = package.LinUCBDisjoint(alpha=0.2, seed=0)
    arms = list(range(n_actions))

    def features(context: Floats) -> dict[int, float]:
        return dict(enumerate(context.tolist()))

    return (
        lambda context: learner.pull(arms, context=features(context)),
        lambda context, action, reward: learner.update(action, features(context), reward),
    )


def contextualbandits(package: Any, d: int, n_actions: int) -> tuple[Act, Update]:
    learner = package.LinUCB(n_actions, alpha=0.2, random_state=1)
    return (
        lambda context: int(learner.predict(context[None])[0]),
        lambda context, action, reward: learner.partial_fit(context[None], np.array([action]), np.array([reward])),
    )


def coba(package: Any, d: int, n_actions: int) -> tuple[Act, Update]:
    """Its features are those of the pair of context and action, a cross product: O((d K)²) a round."""
    learner = package.LinUCBLearner(alpha=0.2, features=["a", "ax"], seed=0)
    arms = [tuple(float(k == j) for j in range(n_actions)) for k in range(n_actions)]
    last: list[float] = []

    def act(context: Floats) -> int:
        action, probability = learner.predict(tuple(context.tolist()), arms)
        last[:] = [probability]
        return arms.index(tuple(action))

    def update(context: Floats, action: int, reward: float) -> None:
        learner.learn(tuple(context.tolist()), arms[action], reward, last[0])

    return act, update


def obp(package: Any, d: int, n_actions: int) -> tuple[Act, Update]:
    learner = package.LinUCB(dim=d, n_actions=n_actions, epsilon=0.2, random_state=0)
    return (
        lambda context: int(learner.select_action(context[None])[0]),
        lambda context, action, reward: learner.update_params(action, reward, context[None]),
    )


PEERS = {
    "mabwiser": Peer("mabwiser.mab", mabwiser, 1000),
    "river": Peer("river.bandit", river, 4000),
    "contextualbandits": Peer("contextualbandits.online", contextualbandits, 1500),
    "coba": Peer("coba.learners", coba, 2000),
    "obp": Peer("obp.policy", obp, 5000),
}


def imported(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(PEERS[name].package)
    except ImportError as error:
        raise Skipped(f"{name} cannot be imported: {error}") from None


def python_loop(name: str, contexts: Floats, rewards: list[list[float]]) -> float:
    """Act, then update, every round; the mean reward."""
    act, update = PEERS[name].make(imported(name), contexts.shape[1], len(rewards[0]))
    total = 0.0
    for context, row in zip(contexts, rewards, strict=True):
        action = act(context)
        update(context, action, row[action])
        total += row[action]
    return total / len(rewards)
