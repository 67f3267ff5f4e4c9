from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structures_folder import write_sets

from o2pl.simulation.description import built
from o2pl.simulation.experiment import Options
from o2pl.simulation.worlds import Drifting, ParquetSet, Structured
from o2pl_reproduction.studies.structures import (
    COLUMNS,
    STRUCTURES,
    STRUCTURES_TUNING,
    means_of_stretches,
    stretch_ends,
)
from o2pl_reproduction.studies.structures_learners import SLOW
from o2pl_reproduction.studies.structures_worlds import PARTS


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return write_sets(tmp_path)


def test_seeds_of_parts_and_of_slow_learners(folder: str) -> None:
    units = STRUCTURES.units(Options("full", data=folder))
    seeds: dict[tuple[str, str], set[int]] = {}
    for unit in units:
        seeds.setdefault((unit.world["part"], unit.learner["name"]), set()).add(unit.seed)
    for (part, learner), found in seeds.items():
        expected = min(PARTS[part].seeds, SLOW.get(learner, PARTS[part].seeds))
        assert found == set(range(expected)), (part, learner)
    assert {part for part, learner in seeds if learner == "boosted-trees"} == {"structures"}
    asked = STRUCTURES.units(Options("full", data=folder, learners=["boosted-trees"], seeds=[8]))
    assert {unit.seed for unit in asked} == {8}


def test_trees_play_on_every_other_set(folder: str) -> None:
    trees = {cell.world["set"] for cell in STRUCTURES.cells(folder) if cell.learner["name"] == "boosted-trees"}
    assert trees == {"iris", "wine", "digits", "7_seven", "28_optdigits", "3_three"}  # not 5_five


def test_a_row_is_what_a_plain_loop_makes_of_its_settings(folder: str) -> None:
    options = Options("full", data=folder, datasets=["structures:graded:3_three"], learners=["squarecb"], seeds=[2])
    (unit,) = STRUCTURES.units(options)
    row = {name: values[0] for name, values in STRUCTURES.run(unit).items()}
    assert set(row) == set(COLUMNS)
    world = Structured(ParquetSet(3, folder), "graded")
    chance, choice = np.random.SeedSequence(8002).spawn(2)
    rounds = world.sample(2000, np.random.default_rng(chance))
    learner: Any = built(unit.learner, n_actions=4, random_state=int(choice.generate_state(1, np.uint64)[0]))
    earned = 0.0
    for t, context in enumerate(rounds.contexts):
        decision = learner.act(context)
        learner.update(context, decision.action, float(rounds.table[t, decision.action]), decision.propensity)
        earned += rounds.expected_table[t, decision.action] / 320
    assert row["reward"] == pytest.approx(earned)
    assert row["uniform"] == pytest.approx(rounds.expected_table.mean())
    assert row["best"] == pytest.approx(0.5)
    assert row["share"] == pytest.approx((earned - row["uniform"]) / (0.5 - row["uniform"]))
    assert (row["played"], row["round"], row["K"], row["d"], row["changes"]) == (320, 320, 4, 2, -1)
    assert row["cpu_seconds"] > 0


def test_rows_under_change_are_a_course(folder: str) -> None:
    options = Options("full", data=folder, datasets=["drift:reversal:28_optdigits"], learners=["linucb"], seeds=[0])
    (unit,) = STRUCTURES.units(options)
    rows = STRUCTURES.run(unit)
    assert list(rows["round"]) == [(k + 1) * 350 // 40 for k in range(40)]
    before, after = rows["reward"][15:20].mean(), rows["reward"][20:25].mean()
    assert before > 0.6  # it knew the names
    assert after < 0.4  # and they are others now
    chance, _ = np.random.SeedSequence(8000).spawn(2)
    sampled = Drifting(ParquetSet(28, folder), "reversal").sample(4000, np.random.default_rng(chance))
    np.testing.assert_allclose(rows["best"], 1.0)
    assert len(sampled) == rows["played"][0] == 350


def test_stretches() -> None:
    np.testing.assert_array_equal(stretch_ends(10, 4), [2, 5, 7, 10])
    np.testing.assert_array_equal(stretch_ends(3, 40), [1, 2, 3])
    np.testing.assert_allclose(means_of_stretches(np.arange(10.0), np.array([2, 5, 7, 10])), [0.5, 3, 5.5, 8])


def test_the_learner_is_called_every_round_and_says_its_changes(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from o2pl import Bandit

    def never(*arguments: Any, **named: Any) -> None:
        raise AssertionError("run: found a call, expected act and update")

    monkeypatch.setattr(Bandit, "run", never)
    monkeypatch.setattr(Bandit, "changes_", [("row", 5.0), ("row", 7.0)], raising=False)
    (unit,) = STRUCTURES.units(Options("quick", rounds=30, datasets=["one-hot:iris"], learners=["bandit"]))
    assert STRUCTURES.run(unit)["changes"] == [2]


def test_every_learner_plays_every_kind_of_world() -> None:
    chosen = ("one-hot:iris", "structures:costs:wine", "drift:gradual:digits", "independent-d5-K3", "wheel")
    options = Options("quick", rounds=40, datasets=chosen, seeds=[0])
    played = set()
    for unit in STRUCTURES.units(options):
        columns = STRUCTURES.run(unit)
        assert set(columns) == set(COLUMNS)
        assert np.isfinite(columns["share"]).all()
        played.add((unit.world["part"], unit.learner["name"]))
    assert {part for part, _ in played} == {"one-hot", "structures", "drift", "independent", "wheel"}


def test_tuning_plays_every_candidate(folder: str) -> None:
    units = STRUCTURES_TUNING.units(Options("full", data=folder))
    assert {unit.world["set"] for unit in units} == {"5_five"}
    families: dict[str, set[int]] = {}
    for unit in units:
        families.setdefault(unit.learner["family"], set()).add(unit.learner["candidate"])
    assert families["squarecb"] == {0, 1, 2, 3}
    assert "bandit" not in families
