"""The loop against one written out, and regret against sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl import O2PL
from o2pl.data.decisions import Decision
from o2pl.errors import InvalidInput
from o2pl.evaluation.play import play, regret
from o2pl.learners.base import Run


class Rounds:
    """Rewards of all actions in a table; the best action is that of the larger context entry."""

    def __init__(self, n: int = 60, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.contexts = rng.normal(size=(n, 2)).astype(np.float32)
        self.means = 1 / (1 + np.exp(-2.0 * self.contexts.astype(float)))
        self.table = (rng.random((n, 2)) < self.means).astype(float)

    def rewards(self, rows: Any, actions: Any) -> Any:
        return self.table[rows, actions]

    def expected(self, rows: Any, actions: Any) -> Any:
        return self.means[rows, actions]

    @property
    def best(self) -> Any:
        return self.means.max(axis=1)


class Alternating:
    """Remembers all it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def act(self, context: Any) -> Any:
        return Decision(len(self.told) % 2, 0.25)

    def update(self, context: Any, action: Any, reward: Any, propensity: Any) -> None:
        self.told.append((tuple(context), action, reward, propensity))


def test_each_round_is_one_decision_and_one_update() -> None:
    rounds, learner = Rounds(), Alternating()
    run = play(learner, rounds, 7)
    assert run.actions.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert run.propensities.tolist() == [0.25] * 7
    assert run.rewards.tolist() == [rounds.table[t, t % 2] for t in range(7)]
    assert learner.told == [(tuple(rounds.contexts[t]), t % 2, rounds.table[t, t % 2], 0.25) for t in range(7)]
    assert len(play(Alternating(), rounds).actions) == 60


def test_it_can_be_called_every_round_all_the_same() -> None:
    class Running(Alternating):
        def run(self, world: Any, rounds: int) -> None:
            raise AssertionError("run: found a call, expected act and update")

    learner = Running()
    play(learner, Rounds(), 7, every_round=True)
    assert len(learner.told) == 7
    with pytest.raises(AssertionError, match="run"):
        play(learner, Rounds(), 7)


def test_a_learner_with_a_run_of_its_own_makes_the_same_decisions() -> None:
    class Plain:
        """The same learner without its `run`."""

        def __init__(self) -> None:
            inner = O2PL(2, random_state=3)
            self.act, self.update = inner.act, inner.update

    fast, slow = play(O2PL(2, random_state=3), Rounds(), 50), play(Plain(), Rounds(), 50)
    assert len(fast.actions) == 50
    assert np.array_equal(fast.actions, slow.actions)
    assert np.array_equal(fast.rewards, slow.rewards)
    assert np.allclose(fast.propensities, slow.propensities)


def test_regret_is_what_the_best_would_have_earned_more() -> None:
    rounds = Rounds()
    actions = np.random.default_rng(1).integers(0, 2, 40)
    found = regret(Run(actions, np.zeros(40), np.ones(40)), rounds)
    total = 0.0
    for t, action in enumerate(actions):
        total += max(rounds.means[t]) - rounds.means[t][action]
        assert found[t] == pytest.approx(total)
    assert found[-1] > 1
    best = Run(rounds.means.argmax(axis=1), np.zeros(60), np.ones(60))
    assert np.array_equal(regret(best, rounds), np.zeros(60))


@pytest.mark.parametrize("n", [0, -1, 61])
def test_more_rounds_than_there_are_cannot_be_played(n: int) -> None:
    with pytest.raises(InvalidInput, match="1 to 60"):
        play(Alternating(), Rounds(), n)
