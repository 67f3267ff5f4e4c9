"""The learners of `exploration`: `Bandit` with and without ε, Thompson sampling, LinUCB and ε-greedy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.decisions import Decision
from o2pl.learners import Bandit
from o2pl.protocols import FeatureMap, Floats, Ints, Seed
from o2pl.simulation.description import OF_THE_RUN, Description, described
from o2pl.simulation.rivals import RAW, RIVALS, UNIT, MakeLearner, seeded_rival
from o2pl.simulation.rivals.discrete import DiscreteLearner
from o2pl.simulation.rivals.linear import LinTS, LinUCB

ALPHA = 1.0  # of LinUCB
BANDITS: dict[str, MakeLearner[Any]] = {
    "bandit": seeded_rival(Bandit),
    "bandit-0.02": seeded_rival(Bandit, exploration=0.02),
    "bandit-0.05": seeded_rival(Bandit, exploration=0.05),
}


@dataclass(eq=False, repr=False)
class BetaThompson(DiscreteLearner):
    """Thompson sampling of rewards 0 and 1: plays the largest of draws from Beta(1 + wins, 1 + losses).

    It does not look at contexts, and is deterministic given its draws: its propensities are 1.

    Parameters
    ----------
    n_actions
        Number of actions K.
    random_state
        Seed, numpy Generator or None.
    """

    n_actions: int
    _: KW_ONLY
    random_state: Seed = None
    features: FeatureMap = RAW

    def _begin(self, width: int, n_features: int) -> None:
        self._generator = np.random.default_rng(self.random_state)
        self._counts = np.ones((2, self.n_actions))  # wins and losses, and one of each

    def _decide(self, features: Floats) -> Decision:
        return Decision(int(np.argmax(self._generator.beta(*self._counts))), 1.0)

    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        self._counts[:, action] += reward, 1 - reward


def _without_range(kind: type, **settings: Any) -> MakeLearner[Any]:
    def make(n_actions: int, seed: int | None, reward_range: Any = UNIT) -> Any:
        return kind(n_actions, random_state=seed, **settings)

    return make


OF_ARMS: dict[str, MakeLearner[Any]] = {
    **BANDITS,
    "thompson": _without_range(BetaThompson),
    "linucb": _without_range(LinUCB, alpha=ALPHA),
    "epsilon-greedy": RIVALS["epsilon-greedy-logistic"],
}
OF_WHEEL: dict[str, MakeLearner[Any]] = {
    **BANDITS,
    "linucb": _without_range(LinUCB, alpha=ALPHA),
    "lints": _without_range(LinTS, scale=1.0),
    "epsilon-greedy": RIVALS["epsilon-greedy-ridge"],
}


# -- learners of items by id: `choose` returns the index of an item on the page and its propensity


class ThompsonOfItems:
    """Thompson sampling of items by id: wins and losses of each item, nothing of users or features."""

    def __init__(self, n_items: int, width: int, seed: int) -> None:
        self._generator, self._counts = np.random.default_rng(seed), np.ones((2, n_items))

    def choose(self, user: Floats, shown: Ints, features: Floats) -> tuple[int, float]:
        return int(np.argmax(self._generator.beta(*self._counts[:, shown]))), 1.0

    def learn(self, user: Floats, item: int, reward: float) -> None:
        self._counts[:, item] += reward, 1 - reward


class LinUCBOfItems:
    """LinUCB of items by id (Li et al. 2010, disjoint models): a ridge regression on the user for each item, α = 1."""

    def __init__(self, n_items: int, width: int, seed: int) -> None:
        self._inverses = np.tile(np.eye(1 + width), (n_items, 1, 1))
        self._weights = np.zeros((n_items, 1 + width))

    def choose(self, user: Floats, shown: Ints, features: Floats) -> tuple[int, float]:
        means, deviations = _core.ridge_scores(self._inverses[shown], self._weights[shown], np.append(1.0, user))
        return int(np.argmax(means + ALPHA * deviations)), 1.0

    def learn(self, user: Floats, item: int, reward: float) -> None:
        _core.absorb_row(self._inverses[item], self._weights[item], np.append(1.0, user), reward)


class BanditOfItems:
    """`Bandit` on a user and items with ids."""

    def __init__(self, learner: Bandit) -> None:
        self._learner = learner

    def choose(self, user: Floats, shown: Ints, features: Floats) -> tuple[int, float]:
        ids = [str(each) for each in shown]
        self._decision = self._learner.act(user, features, ids=ids)
        return ids.index(str(self._decision.action)), self._decision.propensity

    def learn(self, user: Floats, item: int, reward: float) -> None:
        self._learner.update(self._decision, reward)


RIVALS_OF_ITEMS: dict[str, type[ThompsonOfItems | LinUCBOfItems]] = {
    "thompson": ThompsonOfItems,
    "linucb": LinUCBOfItems,
}


def item_descriptions() -> list[Description]:
    """Return the learners of items, described."""
    bandits = [described(name, make(2, None), OF_THE_RUN) for name, make in BANDITS.items()]
    return [
        *bandits,
        *({"name": name, "class": kind.__name__, "alpha": ALPHA} for name, kind in RIVALS_OF_ITEMS.items()),
    ]
