"""The experiments there are: each through the same checks, and their numbers against a plain loop."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from o2pl import O2PL
from o2pl.errors import InvalidInput
from o2pl.simulation import units
from o2pl.simulation.experiment import Experiment, Options
from o2pl.simulation.units import COLUMNS, checkpoints_of_unit
from o2pl.simulation.worlds import WORLDS
from o2pl_reproduction.registry import EXPERIMENTS
from o2pl_reproduction.studies.classification import CLASSIFICATION
from o2pl_reproduction.studies.wheel import WHEEL

each_experiment = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)


@each_experiment
def test_every_experiment_is_whole(experiment: Experiment) -> None:
    cells = experiment.cells(None)
    assert experiment.headline in experiment.columns
    assert "quick" in experiment.sizes
    for name, size in experiment.sizes.items():
        assert set(size.learners or ()) <= {cell.learner["name"] for cell in cells}
        chosen = size.datasets(None) if callable(size.datasets) else size.datasets or ()
        assert set(chosen) <= {cell.world["name"] for cell in cells}
        units = experiment.units(Options(name))
        assert len({unit.digest for unit in units}) == len(units)
        assert all(json.loads(unit.settings)["world"] == json.loads(json.dumps(unit.world)) for unit in units)
    assert pickle.loads(pickle.dumps(experiment.run)) is experiment.run


@pytest.mark.parametrize(
    "experiment", [each for each in EXPERIMENTS.values() if each.columns == COLUMNS], ids=lambda each: each.name
)
def test_every_learner_of_every_comparison_runs(experiment: Experiment) -> None:
    options = Options(rounds=12, datasets=[experiment.cells(None)[0].world["name"]], seeds=[3])
    units = experiment.units(options)
    assert {unit.learner["name"] for unit in units} | set(experiment.left_out(options)) == {
        cell.learner["name"] for cell in experiment.cells(None)
    }
    for unit in units:
        columns = experiment.run(unit)
        assert list(columns) == list(experiment.columns)
        assert len({len(column) for column in columns.values()}) == 1
        assert np.isfinite(columns[experiment.headline]).all()


def test_a_unit_is_what_a_plain_loop_makes_of_its_settings() -> None:
    (unit,) = CLASSIFICATION.units(Options(rounds=130, datasets=["iris"], learners=["o2pl-linear"], seeds=[4]))
    chance, choice = np.random.SeedSequence(4).spawn(2)
    rounds = WORLDS["iris"].sample(130, np.random.default_rng(chance))
    seed = int(choice.generate_state(1, np.uint64)[0])
    learner = O2PL(3, policy="linear", random_state=seed)
    rewards, wrong, expected = 0.0, 0.0, {}
    for t, context in enumerate(rounds.contexts):
        decision = learner.act(context)
        reward = float(rounds.table[t, decision.action])
        learner.update(context, decision.action, reward, decision.propensity)
        rewards += reward
        wrong += rounds.expected_table[t].max() - rounds.expected_table[t, decision.action]
        expected[t + 1] = (rewards / (t + 1), wrong)
    columns = CLASSIFICATION.run(unit)
    assert len(columns["round"]) == 100
    for at, mean, regret in zip(columns["round"], columns["mean_reward"], columns["regret"], strict=True):
        assert (mean, regret) == pytest.approx(expected[int(at)])


def test_all_learners_of_a_seed_meet_the_same_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    met: dict[int, list[np.ndarray]] = {}
    play = units.play

    def watched(learner: Any, rounds: int) -> Any:
        met[unit.seed].append(np.hstack([rounds.contexts, rounds.table]))
        return play(learner, rounds)

    monkeypatch.setattr(units, "play", watched)
    for unit in WHEEL.units(Options(rounds=5, seeds=[0, 1], datasets=["delta-0.9"], learners=["uniform", "linucb"])):
        met.setdefault(unit.seed, [])
        WHEEL.run(unit)
    assert all(len(seen) == 2 and (seen[0] == seen[1]).all() for seen in met.values())
    assert not (met[0][0] == met[1][0]).all()


def test_settings_hold_every_parameter_and_are_checked_where_they_are_used() -> None:
    unit = CLASSIFICATION.units(Options(rounds=5, datasets=["iris"], learners=["paper-replay"]))[0]
    params = unit.learner["params"]
    assert (params["penalty"], params["baseline"], params["schedule"]) == (0.1, None, "replay")
    assert not {"n_actions", "reward_range", "random_state"} & set(params)
    changed = replace(unit, learner={**unit.learner, "params": {**params, "penalty": 0.5}})
    with pytest.raises(InvalidInput, match="classification/2: found other settings here"):
        CLASSIFICATION.run(changed)


def test_exploration_scales_with_the_rewards() -> None:
    alphas = {
        cell.learner["params"]["alpha"]
        for cell in (*WHEEL.cells(None), *CLASSIFICATION.cells(None))
        if cell.learner["name"] == "linucb"
    }
    assert len(alphas) == 2


@pytest.mark.parametrize("n", [1, 7, 99, 100, 101, 1797, 10_000])
def test_checkpoints_are_rounds_in_order_and_end_at_the_last(n: int) -> None:
    at = checkpoints_of_unit(n)
    assert at[-1] == n
    assert 1 <= at[0] <= max(1, -(-n // 100))
    assert len(at) == min(n, 100)
    assert (np.diff(at) > 0).all()
