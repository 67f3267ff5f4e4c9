"""Vowpal Wabbit through examples built by hand, against VW fed with its own text format."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.datasets import load_wine

from o2pl.engine.stream import UniformStream
from o2pl.errors import InvalidInput
from o2pl.features import Chain, Standardise
from o2pl.simulation.rivals.vw import ALGORITHMS, VowpalWabbit

vowpalwabbit = pytest.importorskip("vowpalwabbit")

RAW = Chain()


class TextVW:
    """The slow reference: the same command line, every decision and every label as lines of text."""

    def __init__(self, arguments: Any, n_actions: int) -> None:
        self.vw = vowpalwabbit.Workspace(f"{arguments} --quiet")
        self.n_actions = n_actions

    def _lines(self, features: Any, label: Any = None) -> Any:
        shared = "shared |x " + " ".join(f"{i}:{float(v)!r}" for i, v in enumerate(features))
        lines = [f"|a {k}" for k in range(self.n_actions)]
        if label is not None:
            action, cost, propensity = label
            lines[action] = f"0:{cost}:{propensity} |a {action}"
        return [shared, *lines]

    def predict(self, features: Any) -> Any:
        return self.vw.predict(self._lines(features))

    def learn(self, features: Any, action: Any, cost: Any, propensity: Any) -> None:
        self.vw.learn(self._lines(features, (action, cost, propensity)))


@pytest.mark.parametrize("costs", [(0.0, 1.0), (-1.0, 0.0)])
@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_decisions_are_those_of_vw_on_text_and_propensities_those_it_used(algorithm: Any, costs: Any) -> None:
    rng = np.random.default_rng(0)
    learner = VowpalWabbit(3, algorithm, features=RAW, costs=costs, learning_rate=0.8, random_state=5)
    uniforms = UniformStream(5).take(1000)  # the first one seeds VW, then one per decision
    text = TextVW(f"{learner.arguments()} --random_seed {int(uniforms[0] * 2**31)}", 3)
    best, worst = costs
    for t in range(120):
        x = rng.normal(size=4).astype(np.float32)
        x[1] = 0.0 if t % 3 else x[1]
        expected = np.array(text.predict(x))
        decision = learner.act(x)
        assert decision.action == min(np.searchsorted(np.cumsum(expected), uniforms[t + 1], side="right"), 2)
        assert decision.propensity == pytest.approx(expected[decision.action], abs=1e-6)
        right = decision.action == int(x[0] > 0) + int(x[2] > 1)
        text.learn(x, decision.action, best if right else worst, decision.propensity)
        learner.update(x, decision.action, float(right), decision.propensity)


def play_wine(seed: int, **settings: Any) -> Any:
    X, y = load_wine(return_X_y=True)
    learner, total = VowpalWabbit(3, random_state=seed, **settings), 0.0
    for row in np.random.default_rng(seed).permutation(len(y)):
        decision = learner.act(X[row])
        reward = float(decision.action == y[row])
        learner.update(X[row], decision.action, reward, decision.propensity)
        total += reward
    return total / len(y)


def test_standardised_features_make_vw_strong_on_wine() -> None:
    standardised = [play_wine(seed) for seed in range(6)]
    raw = [play_wine(seed, features=RAW) for seed in range(6)]
    assert np.mean(standardised) > 0.85  # measured .91, lowest run .88
    assert min(standardised) > 0.8
    assert np.mean(raw) < 0.6  # measured .40


def test_regcb_is_told_the_range_of_its_costs() -> None:
    for costs in ((0.0, 1.0), (-1.0, 0.0)):
        assert np.mean([play_wine(seed, algorithm="regcb", costs=costs) for seed in range(3)]) > 0.8  # measured .90
    unbounded = VowpalWabbit(2, "regcb", costs=(-1, 0)).arguments()
    assert "--cb_min_cost -1 --cb_max_cost 0" in unbounded
    assert "cb_min_cost" not in VowpalWabbit(2, "greedy", costs=(-1, 0)).arguments()


def test_cover_draws_with_the_probabilities_it_logs() -> None:
    learner = VowpalWabbit(3, "cover", random_state=2)
    rng = np.random.default_rng(1)
    for _ in range(25):
        x = rng.normal(size=2)
        decision = learner.act(x)
        learner.update(x, decision.action, float(decision.action == (x[0] > 0)), decision.propensity)
    decisions = [learner.act([0.3, 0.1]) for _ in range(3000)]
    propensities = {d.action: d.propensity for d in decisions}
    assert len(propensities) > 1
    counts = np.bincount([d.action for d in decisions], minlength=3)
    expected = np.array([propensities.get(k, 0.0) for k in range(3)])
    assert expected.sum() == pytest.approx(1, abs=1e-5)
    taken = expected > 0
    assert chisquare(counts[taken], 3000 * expected[taken] / expected.sum()).pvalue > 1e-4


def test_every_option_shows() -> None:
    learner = VowpalWabbit(
        4, "bag", interactions="", constant=False, learning_rate=0.25, options="--power_t 0", costs=(-1, 0)
    )
    assert learner.arguments() == (
        "--cb_explore_adf --bag 3 --greedify --ignore_linear x --noconstant --learning_rate 0.25 --power_t 0"
    )
    assert VowpalWabbit(4).arguments() == (
        "--cb_explore_adf --epsilon 0 --interactions ax --ignore_linear x --learning_rate 0.5"
    )
    assert learner.get_params() == {
        "n_actions": 4,
        "algorithm": "bag",
        "features": Standardise(),
        "interactions": "",
        "constant": False,
        "costs": (-1, 0),
        "learning_rate": 0.25,
        "options": "--power_t 0",
        "reward_range": (0.0, 1.0),
        "random_state": None,
    }


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"algorithm": "softmax"}, "algorithm"),
        ({"costs": (1, 0)}, "costs"),
        ({"costs": 3}, "costs"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"reward_range": (1, 1)}, "reward_range"),
    ],
)
def test_settings_are_checked(settings: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        VowpalWabbit(2, **settings).act([1.0])
