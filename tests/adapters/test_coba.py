"""coba's learner, by its own protocol; and inside the real coba."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from tests.adapters.inside import run_inside

from o2pl.adapters.coba import CobaLearner
from o2pl.errors import InvalidInput


def play(learner: Any, rounds: int, contexts: Any, actions: Any, reward: Any) -> Any:
    paid = []
    for t in range(rounds):
        context, offered = contexts(t), actions(t)
        action, probability, told = learner.predict(context, offered)
        assert probability == pytest.approx(learner.score(context, offered, action), abs=1e-6)
        paid.append(reward(context, action))
        learner.learn(context, action, paid[-1], probability, **told)
    return np.mean(paid[-rounds // 4 :])


def test_rows_of_numbers_and_actions_that_are_names() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    for names in (["a", "b"], [(1, 0), (0, 1)]):
        learner = CobaLearner(random_state=0)
        first = names[0]
        late = play(
            learner, 400, lambda t: tuple(X[t]), lambda t, names=names: names,
            lambda x, a, first=first: float((a == first) == (x[0] > 0)),
        )  # fmt: skip
        assert late > 0.85
        assert learner.params == {"family": "o2pl.Bandit", "random_state": 0}


def test_words_dictionaries_and_no_context_at_all() -> None:
    cities = ["Rome", "Oslo"]
    for make in (lambda t: (cities[t % 2], 1.5), lambda t: {"city": cities[t % 2]}):
        late = play(
            CobaLearner(random_state=0), 200, make, lambda t: ["a", "b"],
            lambda x, a: float((a == "a") == ("Rome" in (x.values() if isinstance(x, dict) else x))),
        )  # fmt: skip
        assert late > 0.9
    assert play(CobaLearner(random_state=0), 100, lambda t: None, lambda t: [1, 2, 3], lambda x, a: float(a == 2)) > 0.9


def test_actions_with_features_change_from_round_to_round() -> None:
    rng = np.random.default_rng(0)
    offers = [[(float(v), 1.0) for v in rng.normal(size=rng.integers(2, 5))] for _ in range(300)]

    def reward(context: Any, action: Any) -> Any:
        return 1 / (1 + np.exp(-2 * action[0]))

    late = play(CobaLearner(random_state=0), 300, lambda t: {"user": "ann"}, lambda t: offers[t], reward)
    possible = np.mean([max(reward(None, action) for action in offer) for offer in offers[-75:]])
    assert late > 0.97 * possible
    assert possible > 0.6  # by chance 0.5


def test_logged_actions_are_learned_from() -> None:
    rng = np.random.default_rng(0)
    learner = CobaLearner("O2PL", random_state=0, policy="linear")
    with pytest.raises(InvalidInput, match="before any set of actions"):
        learner.learn((0.0,), "a", 1.0, 0.5)
    learner.predict((0.0,), ["a", "b"])
    for _ in range(200):
        x, action = (float(rng.normal()),), ["a", "b"][rng.integers(2)]
        learner.learn(x, action, float((action == "a") == (x[0] > 0)), 0.5)
    assert learner.score((2.0,), ["a", "b"], "a") > 0.9
    twin = copy.deepcopy(learner)
    assert twin.predict((1.0,), ["a", "b"])[:2] == learner.predict((1.0,), ["a", "b"])[:2]
    with pytest.raises(InvalidInput, match="found 'c', which was not in the first round"):
        learner.predict((0.0,), ["a", "c"])
    learner.learn((0.0,), "a", 1.2, 0.5)
    assert learner._learner.log_.rewards[-1] == 1  # cut
    with pytest.raises(InvalidInput, match="probability: found None"):
        learner.learn((0.0,), "a", 1.0, None)
    with pytest.raises(InvalidInput, match="expected one of Bandit, O2PL"):
        CobaLearner("Bandti")


@pytest.mark.peers
def test_inside_the_real_coba() -> None:
    said = run_inside(
        "coba",
        """
        import coba
        from o2pl.adapters.coba import CobaLearner

        environments = coba.Environments.from_linear_synthetic(600, n_actions=3, seed=1)
        learners = [CobaLearner(random_state=0), CobaLearner("O2PL", random_state=0), coba.RandomLearner()]
        recorded = coba.SequentialCB(record=["reward", "probability"])
        result = coba.Experiment(environments, learners, recorded).run(quiet=True)
        table = [dict(zip(result.interactions.columns, row)) for row in result.interactions]
        for learner in range(3):
            paid = [row["reward"] for row in table if row["learner_id"] == learner]
            print(len(paid), sum(paid[-300:]) / 300)
        batched = coba.Experiment(environments.batch(4), CobaLearner(random_state=0)).run(quiet=True)
        print(len(batched.interactions), [row[1] for row in result.learners])
        """,
    )
    (n, bandit), (_, direct), (_, chance), (batches, *families) = (line.split() for line in said.splitlines())
    assert n == "600"
    assert float(bandit) > float(chance) + 0.05
    assert float(direct) > float(chance) + 0.05
    assert int(batches) > 0
    assert "o2pl.Bandit" in " ".join(families)
