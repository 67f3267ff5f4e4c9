"""The contract of every rival: a row of the table is run through all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.base import clone

from o2pl.errors import InvalidInput
from o2pl.evaluation.play import play
from o2pl.simulation.rivals import OFFLINE_RIVALS, RIVALS

RANGE = (-2.0, 3.0)  # not the default one


class TwoClasses:
    """Two clouds on a slope through the origin, on scales that differ a hundredfold; the right class brings 3, else -2.

    The classes are as likely, so any fixed action and the uniform one earn .5 on average.
    """

    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 2, n)
        centre = np.where(self.labels[:, None] == 1, [1.2, 1.2, 0.0], [-1.2, -1.2, 0.0])
        self.contexts = ((centre + rng.normal(size=(n, 3))) * [1, 10, 0.1]).astype(np.float32)

    def rewards(self, rows: Any, actions: Any) -> Any:
        return np.where(self.labels[rows] == actions, RANGE[1], RANGE[0])

    def expected(self, rows: Any, actions: Any) -> Any:
        return self.rewards(rows, actions)


@pytest.fixture(params=RIVALS)
def name(request: pytest.FixtureRequest) -> Any:
    if request.param.startswith("vw"):
        pytest.importorskip("vowpalwabbit")
    return request.param


def run(name: Any, seed: int, n: int = 400, world: int = 0) -> Any:
    return play(RIVALS[name](2, seed, RANGE), TwoClasses(n, world))


def share_of_successes(rewards: Any) -> Any:
    return float(np.mean(rewards > 0))


def test_it_beats_uniform_by_a_clear_margin(name: Any) -> None:
    """At 400 rounds uniform has a share of successes of .5 ± .025."""
    share = share_of_successes(run(name, seed=1).rewards)
    if name == "uniform":
        assert abs(share - 0.5) < 4 * 0.025
    else:
        assert share > 0.65


def test_its_decisions_come_from_its_seed(name: Any) -> None:
    first, again, other = run(name, 5, 120), run(name, 5, 120), run(name, 6, 120)
    assert np.array_equal(first.actions, again.actions)
    assert np.array_equal(first.propensities, again.propensities)
    if np.sum(first.propensities < 0.9) > 10:  # enough was drawn for two seeds to differ
        assert not np.array_equal(first.actions, other.actions)


def test_its_propensities_are_the_frequencies_of_a_frozen_state(name: Any) -> None:
    learner, world = RIVALS[name](2, 3, RANGE), TwoClasses(60, 1)
    play(learner, world, 20)
    draws = 300 if name == "boosted-trees" else 1500  # a decision of trees takes milliseconds
    for context in world.contexts[50:53] * 0.1:
        decisions = [learner.act(context) for _ in range(draws)]
        propensities = {d.action: d.propensity for d in decisions}
        counts = np.array([sum(d.action == a for d in decisions) for a in propensities])
        expected = np.array(list(propensities.values()))
        if len(propensities) == 1:  # certain, or nearly so: the other action was never seen
            assert expected[0] > 0.99
        else:
            assert expected.sum() == pytest.approx(1, abs=1e-5)
            assert chisquare(counts, draws * expected / expected.sum()).pvalue > 1e-4
        assert all(d.propensity == propensities[d.action] for d in decisions)


def test_it_can_be_cloned(name: Any) -> None:
    learner, world = RIVALS[name](2, 4, RANGE), TwoClasses(40, 2)
    play(learner, world)
    twin = clone(learner)
    assert repr(twin) == repr(learner)
    fresh = play(RIVALS[name](2, 4, RANGE), world)
    assert np.array_equal(play(twin, world).actions, fresh.actions)  # what was learned is not cloned
    with pytest.raises(InvalidInput, match="nothing_of_the_kind"):
        twin.set_params(nothing_of_the_kind=1)


def test_it_refuses_bad_input_and_goes_on_as_if_there_had_been_none(name: Any) -> None:
    learner, twin, world = RIVALS[name](2, 0, RANGE), RIVALS[name](2, 0, RANGE), TwoClasses(40, 3)
    context = world.contexts[0]
    assert learner.act(context) == twin.act(context)
    for bad in ([1.0], [context], [1.0, np.nan, 2.0], ["a", "b", "c"], [], None):
        with pytest.raises(InvalidInput):
            learner.act(bad)
        with pytest.raises(InvalidInput):
            learner.update(bad, 0, 1.0, 0.5)
    for action, reward, propensity in (
        (2, 1.0, 0.5),
        (-1, 1.0, 0.5),
        (0.5, 1.0, 0.5),
        ("a", 1.0, 0.5),
        (0, np.nan, 0.5),
        (0, "x", 0.5),
        (0, 1.0, 0.0),
        (0, 1.0, 1.5),
        (0, 1.0, "x"),
    ):
        with pytest.raises(InvalidInput, match=r"found|expected"):
            learner.update(context, action, reward, propensity)
    unmoved, expected = play(learner, world), play(twin, world)
    assert np.array_equal(unmoved.actions, expected.actions)
    assert np.array_equal(unmoved.propensities, expected.propensities)
    with pytest.raises(InvalidInput):
        RIVALS[name](0, 0).act([1.0])


def logged(n: int, seed: int) -> Any:
    """A uniform logger in that world."""
    world = TwoClasses(n, seed)
    actions = np.random.default_rng(seed + 100).integers(0, 2, n)
    return world.contexts, actions, world.rewards(np.arange(n), actions), np.full(n, 0.5), world.labels


@pytest.mark.parametrize("offline", OFFLINE_RIVALS)
def test_offline_rivals_learn_are_reproducible_and_can_be_cloned(offline: Any) -> None:
    contexts, actions, rewards, propensities, _ = logged(400, 0)
    learner = OFFLINE_RIVALS[offline](2, 7, RANGE).fit(contexts, actions, rewards, propensities)
    fresh, *_, labels = logged(2000, 1)
    share = np.mean(learner.predict(fresh) == labels)
    if "additive" in offline:  # ranks the actions alike for every context
        assert abs(share - 0.5) < 0.05
    else:
        assert share > 0.85
    probabilities = learner.predict_proba(fresh)
    assert probabilities.shape == (2000, 2)
    assert np.allclose(probabilities.sum(axis=1), 1)
    again = clone(learner).fit(contexts, actions, rewards, propensities)
    assert np.array_equal(again.predict_proba(fresh), probabilities)
    with pytest.raises(InvalidInput, match="reward"):
        learner.fit(contexts, actions, rewards + 1, propensities)
