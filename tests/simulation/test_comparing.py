"""`compare`: the same rows in one process, in several, on Ray; table and figure; what is finished is not run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.simulation import LearnerComparison, compare, play
from o2pl.simulation.engines import Outcome
from o2pl.simulation.experiment import Unit
from o2pl.simulation.run_progress import Silent
from o2pl.simulation.worlds import WORLDS, Classification, Embedded

LEARNERS = {"ours": o2pl.O2PL(penalty=0.5), "linucb": "linucb"}


class Counting(Silent):
    def __init__(self) -> None:
        self.units: list[tuple[str, str, int]] = []

    def ended(self, unit: Unit, outcome: Outcome) -> None:
        self.units.append((unit.world["name"], unit.learner["name"], unit.seed))


@pytest.fixture(scope="module")
def found() -> LearnerComparison:
    return compare(LEARNERS, ["iris", "wheel"], seeds=2, rounds=60, workers=1)


def test_rows_are_those_of_a_loop(found: LearnerComparison) -> None:
    assert found.rows.column_names == ["world", "learner", "seed", "round", "mean_reward", "regret"]
    assert len(found.rows) == 2 * 2 * 2 * 60
    chance, choice = np.random.SeedSequence(1).spawn(2)
    rounds = WORLDS["iris"].sample(60, np.random.default_rng(chance))
    seed = int(choice.generate_state(1, np.uint64)[0])
    done = play(o2pl.O2PL(3, penalty=0.5, random_state=seed), rounds)
    assert found.last()["iris", "ours"][1] == done.rewards.mean()


def test_processes_find_the_same(found: LearnerComparison) -> None:
    again = compare(LEARNERS, ["iris", "wheel"], seeds=[1, 0], rounds=60, workers=2)
    assert again.rows.equals(found.rows)


def test_ray_finds_the_same(found: LearnerComparison) -> None:
    pytest.importorskip("ray")
    again = compare(LEARNERS, ["iris", "wheel"], seeds=2, rounds=60, workers=2, engine="ray")
    assert again.rows.equals(found.rows)


def test_the_table_and_the_figure(found: LearnerComparison) -> None:
    lines = str(found).splitlines()
    assert lines[0] == "iris (2 seeds; ± standard error)"
    assert lines[1].split() == ["learner", "mean", "reward", "regret"]
    assert {line.split()[0] for line in lines[2:4]} == {"ours", "linucb"}
    earned = found.last()
    best = max(("ours", "linucb"), key=lambda name: float(earned["iris", name].mean()))
    assert lines[2].startswith(f"{best} ")
    assert f"{earned['iris', best].mean():.4f} ± " in lines[2]
    axes = found.figure("wheel").axes[0]
    assert len(axes.get_lines()) == len(axes.collections) == 2  # means and bands
    assert axes.get_ylabel() == "regret so far"
    for given, message in (
        ({}, "world: found None, expected one of iris, wheel"),
        ({"world": "wheel", "column": "regrets"}, "column: found 'regrets', expected 'regret'"),
    ):
        with pytest.raises(o2pl.InvalidInput, match=message):
            found.figure(**given)


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"rounds": 30, "workers": 1, "out": tmp_path}
    first = compare(LEARNERS, ["iris"], seeds=2, **arguments)
    counting = Counting()
    more = compare({**LEARNERS, "even": "uniform"}, ["iris"], seeds=3, progress=counting, **arguments)
    assert counting.units == [("iris", "even", 0), ("iris", "even", 1), *(("iris", n, 2) for n in (*LEARNERS, "even"))]
    for name in LEARNERS:
        np.testing.assert_array_equal(more.last()["iris", name][:2], first.last()["iris", name])
    counting = Counting()
    compare({"ours": o2pl.O2PL(penalty=0.6)}, ["iris"], seeds=1, progress=counting, **arguments)
    assert counting.units == [("iris", "ours", 0)]  # other settings


class Stubborn:
    """A learner of other people's."""

    def __init__(self, action: int) -> None:
        self.action = action

    def act(self, context: Any) -> o2pl.Decision:
        return o2pl.Decision(self.action, 1.0)

    def update(self, *told: Any) -> None:
        if self.action > 1:
            raise ValueError("no luck")


def test_learners_and_worlds_of_ones_own(tmp_path: Path) -> None:
    mine = {"first": lambda n_actions, seed, reward_range: Stubborn(0)}
    found = compare(mine, {"flowers": Classification(Embedded("iris"))}, seeds=1, rounds=20, workers=1)
    assert (found.worlds, found.learners) == (("flowers",), ("first",))
    assert 0 <= found.last()["flowers", "first"][0] <= 1
    assert "±" not in str(found).splitlines()[2]
    prices = compare({"ours": o2pl.GaussianO2PL()}, ["gaussian"], seeds=1, rounds=20, workers=1)
    assert prices.last("regret")["gaussian", "ours"][0] > 0
    failing = {"bad": lambda n_actions, seed, reward_range: Stubborn(2)}
    message = "1 of 1 runs failed, the first in world 'iris' with learner 'bad' and seed 4: ValueError: no luck"
    with pytest.raises(o2pl.InvalidInput, match=message):
        compare(failing, ["iris"], seeds=[4], rounds=20, workers=1, out=tmp_path)
    assert len(list(tmp_path.glob("comparison/failed-*.txt"))) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learners": ["linucbb"]}, "learners: found 'linucbb', expected 'linucb'"),
        ({"worlds": ["digitz"]}, "worlds: found 'digitz', expected 'digits'"),
        ({"learners": {"a": 3}}, "learners, 'a': found a int, expected a learner such as"),
        ({"learners": {}}, "found no learner, no world or no seed"),
        ({"engine": "spark"}, "engine: found 'spark', expected one of local, ray"),
        ({"learners": {"mine": lambda *given: None}}, "learners, 'mine': cannot be sent to other processes"),
        ({"rounds": 0}, "rounds: found 0"),
    ],
)
def test_mistakes_are_said_before_any_work(given: dict[str, Any], message: str) -> None:
    with pytest.raises(o2pl.InvalidInput, match=message):
        compare(**{"learners": ["linucb"], "worlds": ["iris"], "seeds": 1, "rounds": 10, **given})
