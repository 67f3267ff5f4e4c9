"""The experiments there are: each through the same checks, and their numbers against a plain loop."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2pl import O2PL
from o2pl.environments import WORLDS
from o2pl.errors import InvalidInput
from o2pl.experiments import EXPERIMENTS, comparison, figures, summary
from o2pl.experiments.classification import CLASSIFICATION, LEARNERS
from o2pl.experiments.comparison import COLUMNS, checkpoints
from o2pl.experiments.demo import DEMO, LABELS
from o2pl.experiments.experiment import Experiment, Options
from o2pl.experiments.wheel import WHEEL

ALL = [*EXPERIMENTS.values(), DEMO]
each_experiment = pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)


@each_experiment
def test_every_experiment_is_whole(experiment: Experiment):
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
def test_every_learner_of_every_comparison_runs(experiment: Experiment):
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


def test_a_unit_is_what_a_plain_loop_makes_of_its_settings():
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


def test_all_learners_of_a_seed_meet_the_same_rounds(monkeypatch):
    met: dict[int, list[np.ndarray]] = {}
    play = comparison.play

    def watched(learner, rounds):
        met[unit.seed].append(np.hstack([rounds.contexts, rounds.table]))
        return play(learner, rounds)

    monkeypatch.setattr(comparison, "play", watched)
    for unit in WHEEL.units(Options(rounds=5, seeds=[0, 1], datasets=["delta-0.9"], learners=["uniform", "linucb"])):
        met.setdefault(unit.seed, [])
        WHEEL.run(unit)
    assert all(len(seen) == 2 and (seen[0] == seen[1]).all() for seen in met.values())
    assert not (met[0][0] == met[1][0]).all()


def test_settings_hold_every_parameter_and_are_checked_where_they_are_used():
    unit = CLASSIFICATION.units(Options(rounds=5, datasets=["iris"], learners=["paper-replay"]))[0]
    params = unit.learner["params"]
    assert (params["penalty"], params["baseline"], params["schedule"]) == (0.1, None, "replay")
    assert not {"n_actions", "reward_range", "random_state"} & set(params)
    changed = replace(unit, learner={**unit.learner, "params": {**params, "penalty": 0.5}})
    with pytest.raises(InvalidInput, match="classification/2: found other settings here"):
        CLASSIFICATION.run(changed)


def test_exploration_scales_with_the_rewards():
    alphas = {
        cell.learner["params"]["alpha"]
        for cell in (*WHEEL.cells(None), *CLASSIFICATION.cells(None))
        if cell.learner["name"] == "linucb"
    }
    assert len(alphas) == 2


def test_a_folder_of_data_sets_joins_the_table(tmp_path: Path):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=30), "kind": ["a", "b"] * 15, "target": [0, 1] * 15})
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        pq.write_table(table, tmp_path / folder / "7_small.parquet")
    options = Options(rounds=20, datasets=["7_small"], learners=["uniform"], data=str(tmp_path / "here"))
    unit = CLASSIFICATION.units(options)[0]
    assert unit.number == len(CLASSIFICATION.cells(None)) + list(LEARNERS).index("uniform")
    assert CLASSIFICATION.run(unit)["round"][-1] == 20
    there = CLASSIFICATION.units(replace(options, data=str(tmp_path / "there")))[0]
    assert there.digest == unit.digest
    assert "7_small" not in {cell.world["name"] for cell in CLASSIFICATION.cells(None)}


@pytest.mark.parametrize("n", [1, 7, 99, 100, 101, 1797, 10_000])
def test_checkpoints_are_rounds_in_order_and_end_at_the_last(n: int):
    at = checkpoints(n)
    assert at[-1] == n
    assert 1 <= at[0] <= max(1, -(-n // 100))
    assert len(at) == min(n, 100)
    assert (np.diff(at) > 0).all()


def rows_of_two_seeds() -> pa.Table:
    return pa.table(
        {
            "unit": [0, 0, 1, 1, 2, 2, 3, 3],
            "world": ["digits"] * 8,
            "learner": ["o2pl", "o2pl", "uniform", "uniform"] * 2,
            "round": [1, 2] * 4,
            "mean_reward": [0.1, 0.5, 0.2, 0.1, 0.3, 0.7, 0.0, 0.1],
        }
    )


def test_the_summary_takes_the_last_value_of_each_unit():
    finals = summary.final_values(rows_of_two_seeds(), "mean_reward")
    assert {key: list(values) for key, values in finals.items()} == {
        ("digits", "o2pl"): [0.5, 0.7],
        ("digits", "uniform"): [0.1, 0.1],
    }
    mean, error = summary.mean_and_error(finals["digits", "o2pl"])
    assert (mean, error) == pytest.approx((0.6, 0.1))  # sd = 0.1 √2, over √2
    shown = summary.table(rows_of_two_seeds(), "mean_reward")
    assert [list(column.cells) for column in shown.columns] == [["o2pl", "uniform"], ["0.600 ± 0.100", "0.100 ± 0.000"]]


def test_the_picture_shows_the_stored_rows(tmp_path: Path):
    figure = figures.curves(rows_of_two_seeds(), "mean_reward", LABELS, title="t", ylabel="y", top=1.0)
    lines = {tuple(line.get_ydata()) for line in figure.axes[0].get_lines()}
    assert {tuple(np.round(line, 9)) for line in lines} == {(0.2, 0.6), (0.1, 0.1)}
    assert [text.get_text() for text in figure.axes[0].texts] == [LABELS["o2pl"], LABELS["uniform"]]
    first = figures.save(figure, tmp_path / "first")
    again = figures.curves(rows_of_two_seeds(), "mean_reward", LABELS, title="t", ylabel="y", top=1.0)
    assert [path.name for path in first] == ["first.png", "first.svg"]
    assert [path.read_bytes() for path in first] == [p.read_bytes() for p in figures.save(again, tmp_path / "again")]
