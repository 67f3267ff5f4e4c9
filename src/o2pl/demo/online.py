"""Step 1: compare learners on handwritten digits. Each picks a digit and learns only whether it was right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from o2pl.evaluation.play import play
from o2pl.extras import missing_extra
from o2pl.learners import Bandit
from o2pl.protocols import Floats
from o2pl.simulation.rivals import RIVALS, seeded_rival
from o2pl.simulation.worlds import Classification, Embedded

DIGITS = Embedded("digits")
BANDIT, VW, UNIFORM = "Bandit()", "Vowpal Wabbit", "random choice"
# VW's greedy did best of its algorithms in our bake-off; it gets standardised inputs, as all others do.
LEARNERS = {
    BANDIT: seeded_rival(Bandit),
    "LinUCB": RIVALS["linucb"],
    "ridge, greedy": RIVALS["greedy-ridge"],
    VW: RIVALS["vw-greedy"],
    UNIFORM: RIVALS["uniform"],
}


@dataclass(frozen=True, eq=False)
class Online:
    """The rewards of each learner in every round."""

    rewards: Mapping[str, Floats]  # [seeds, rounds]; all learners of a seed play the same rounds

    def mean(self, learner: str) -> float:
        return float(self.rewards[learner].mean())

    def so_far(self, learner: str) -> Floats:
        """Return the mean reward up to each round, [seeds, rounds]."""
        earned = self.rewards[learner]
        return np.asarray(np.cumsum(earned, axis=1) / np.arange(1, earned.shape[1] + 1))


def learn_online(rounds: int, seeds: int, say: Callable[[str], None]) -> Online:
    world = Classification(DIGITS)
    chosen = {name: make for name, make in LEARNERS.items() if name != VW or not missing_extra("vw")}
    rewards: dict[str, Floats] = {}
    for name, make in chosen.items():
        say(f"{name} learns")
        runs = []
        for seed in range(seeds):
            met = world.sample(rounds, np.random.default_rng([seed, 1]))
            runs.append(play(make(world.n_actions, seed), met).rewards)
        rewards[name] = np.stack(runs)
    return Online(rewards)
