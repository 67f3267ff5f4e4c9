"""The bake-off: halves, seeds, learners as data, freezing, and a small bake-off on embedded sets."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2pl import O2PL
from o2pl.environments import Classification, ParquetSet
from o2pl.errors import InvalidInput
from o2pl.experiments import Options
from o2pl.experiments.bakeoff import BAKEOFF, BAKEOFF_TUNING, COLUMNS
from o2pl.experiments.bakeoff_freeze import freeze, main, write_frozen
from o2pl.experiments.bakeoff_learners import (
    ENTRANTS,
    FROZEN,
    TRIED,
    candidate_learners,
    frozen_learners,
    learner_of,
    read_frozen,
)
from o2pl.experiments.classification import EMBEDDED
from o2pl.storage import decode

ORDER = ("7_seven", "3_three", "9_nine", "1_one", "5_five")  # as the manifest has it


@pytest.fixture
def folder(tmp_path: Path) -> str:
    generator = np.random.default_rng(0)
    for stem in ORDER:
        labels = generator.integers(3, size=30)
        columns = {"x": labels + generator.normal(size=30), "kind": ["a", "b"] * 15, "target": labels}
        pq.write_table(pa.table(columns), tmp_path / f"{stem}.parquet")
    lines = ["id,name,rows,n_classes", *(f"{stem.split('_')[0]},{stem.split('_')[1]},30,3" for stem in ORDER)]
    (tmp_path / "MANIFEST.csv").write_text("\n".join(lines) + "\n")
    return str(tmp_path)


def worlds(units: list[Any]) -> list[str]:
    return list(dict.fromkeys(str(unit.world["name"]) for unit in units))


# -- halves and seeds


def test_even_positions_are_tuned_on_and_odd_ones_compared_on(folder: str):
    compared = worlds(BAKEOFF.units(Options("full", data=folder)))
    tuned = worlds(BAKEOFF_TUNING.units(Options("full", data=folder)))
    assert compared == ["3_three", "1_one"]
    assert tuned == ["7_seven", "9_nine", "5_five"]
    assert worlds(BAKEOFF.units(Options("full"))) == worlds(BAKEOFF_TUNING.units(Options("full"))) == list(EMBEDDED)
    assert worlds(BAKEOFF.units(Options("quick", data=folder))) == list(EMBEDDED)
    asked = BAKEOFF.units(Options("full", data=folder, datasets=list(ORDER)))
    assert {unit.world["name"]: (unit.world["position"], unit.world["half"]) for unit in asked} == {
        "7_seven": (0, "tuning"),
        "3_three": (1, "confirmation"),
        "9_nine": (2, "tuning"),
        "1_one": (3, "confirmation"),
        "5_five": (4, "tuning"),
    }
    with pytest.raises(InvalidInput, match="found '3_three' for bakeoff-tuning"):
        BAKEOFF_TUNING.units(Options("full", data=folder, datasets=["3_three"]))


def test_a_number_is_the_same_unit_whatever_is_chosen(folder: str):
    for unit in BAKEOFF.units(Options("full", data=folder, seeds=[0, 1], learners=["uniform", "o2pl"])):
        assert BAKEOFF.unit(unit.number, Options("full", data=folder)) == unit


def test_tuning_has_seeds_of_its_own(folder: str):
    options = Options("full", data=folder, seeds=[2], datasets=["iris"], rounds=40)
    (tuned,) = BAKEOFF_TUNING.units(replace(options, learners=["linucb:0"]))
    (compared,) = BAKEOFF.units(replace(options, learners=["linucb"]))
    (far,) = BAKEOFF.units(replace(options, learners=["linucb"], seeds=[992]))
    assert (tuned.world["first_seed"], compared.world["first_seed"]) == (1000, 10)
    far = replace(far, learner=tuned.learner)
    assert BAKEOFF_TUNING.run(tuned)["mean_reward"] == BAKEOFF.run(far)["mean_reward"]
    assert BAKEOFF.run(replace(far, seed=2))["mean_reward"] != BAKEOFF.run(far)["mean_reward"]


# -- learners as data


def test_everyone_who_is_tuned_has_as_many_settings():
    assert {len(entrant.candidates) for entrant in ENTRANTS.values()} == {0, TRIED, TRIED + 4}
    params = [json.dumps([each.settings["family"], each.settings["params"]]) for each in candidate_learners()]
    assert len(set(params)) == len(params)
    assert {each.settings["name"] for each in frozen_learners()} == set(ENTRANTS)


def test_settings_make_the_learner_they_describe():
    for each in (*frozen_learners(), *candidate_learners()):
        settings = json.loads(json.dumps(each.settings))
        learner: Any = learner_of(settings, 4, 11)
        made = learner.get_params()
        assert (made.pop("n_actions"), made.pop("random_state")) == (4, 11)
        assert made.pop("reward_range", (0.0, 1.0)) == (0.0, 1.0)
        assert made == {name: decode(value) for name, value in settings["params"].items()}
        assert each.needs == ("vowpalwabbit" if settings["class"] == "VowpalWabbit" else None)


def test_the_default_constructor_is_what_takes_part_and_what_was_frozen():
    params = {each.settings["name"]: each.settings["params"] for each in frozen_learners()}
    default = O2PL().get_params()
    assert {name: decode(value) for name, value in params["o2pl"].items()}.items() <= default.items()
    frozen = {name: decode(value) for name, value in read_frozen()["o2pl"]["settings"].items()}
    assert O2PL(**frozen).get_params() == default


def test_the_published_protocol_is_vw_off_the_shelf():
    for each in frozen_learners():
        if each.settings["protocol"] == "published":
            learner: Any = learner_of(each.settings, 3, 0)
            assert learner.features.maps == ()
            assert (learner.constant, learner.costs, learner.learning_rate) == (False, (0.0, 1.0), 0.5)


# -- freezing


def tuning_rows(rewards: dict[str, list[float]], sets: dict[str, str] | None = None) -> pa.Table:
    """Rows of `family` -> the mean reward of each candidate, on two sets whose rewards lie ±0.1 around it."""
    made = []
    settings = {each.settings["name"]: dict(each.settings) for each in candidate_learners()}
    for family, means in rewards.items():
        for number, mean in enumerate(means):
            for place, (world, half) in enumerate((sets or {"7_seven": "tuning", "9_nine": "tuning"}).items()):
                for seed in (0, 1):
                    unit = {
                        "world": {"name": world, "half": half, "first_seed": 1000},
                        "learner": settings[f"{family}:{number}"],
                        "rounds": 500,
                        "seed": seed,
                    }
                    reward = mean + (0.1, -0.1)[place]
                    made.append({"settings": json.dumps(unit), "rounds": 500, "mean_reward": reward})
    return pa.Table.from_pylist(made)


def test_freezing_takes_the_best_mean_and_the_first_of_equals():
    greedy = [0.5, 0.6, 0.75, 0.75, 0.3, 0.2, 0.1, 0.0]
    ridge = [0.1] * 7 + [0.2]
    frozen = freeze(tuning_rows({"vw-greedy": greedy, "ridge-greedy": ridge}), "2026-01-31")
    assert set(frozen) == {"vw-greedy", "ridge-greedy"}
    entry = frozen["vw-greedy"]
    assert entry["settings"] == ENTRANTS["vw-greedy"].candidates[2]
    assert entry["mean_reward"] == pytest.approx(0.75)
    assert [each["mean_reward"] for each in entry["candidates"]] == pytest.approx(greedy)
    assert (entry["tried"], entry["sets"], entry["seeds"], entry["rounds"]) == (8, 2, [1000, 1001], 500)
    assert entry["date"] == "2026-01-31"
    assert frozen["ridge-greedy"]["settings"] == ENTRANTS["ridge-greedy"].candidates[7]


def test_freezing_refuses_rows_that_do_not_compare():
    with pytest.raises(InvalidInput, match="expected all 8 settings on the same sets and seeds"):
        freeze(tuning_rows({"vw-greedy": [0.5] * 7}), "today")
    rows = tuning_rows({"vw-greedy": [0.5] * 8})
    with pytest.raises(InvalidInput, match="vw-greedy: found runs"):
        freeze(rows.slice(1), "today")
    opened = tuning_rows({"vw-greedy": [0.5] * 8}, {"7_seven": "tuning", "3_three": "confirmation"})
    with pytest.raises(InvalidInput, match="confirmation half \\(3_three\\)"):
        freeze(opened, "today")


def test_the_frozen_file_is_what_the_bakeoff_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "frozen.json"
    file.write_bytes(FROZEN.read_bytes())
    steps = [0.0] * 7 + [1.0]
    rows = tuning_rows(dict.fromkeys(("o2pl", "ridge-greedy", "o2pl-replay-tuned"), steps))
    pq.write_table(rows, tmp_path / "bakeoff-tuning.parquet")
    main([str(tmp_path), str(file)])
    assert "ridge-greedy " in capsys.readouterr().out
    before = {each.settings["name"]: each.settings for each in frozen_learners()}
    after = {each.settings["name"]: each.settings for each in frozen_learners(file)}
    changed = {name for name in after if before[name] != after[name]}
    assert changed == {
        "ridge-greedy",
        "o2pl-replay-tuned",
    }  # O2PL plays as its constructor makes it, whatever was frozen
    assert after["ridge-greedy"]["params"]["l2"] == 1000.0
    learner: Any = learner_of(after["o2pl-replay-tuned"], 2, 0)
    assert learner.get_params()["schedule"] == ENTRANTS["o2pl-replay-tuned"].candidates[7]["schedule"]
    assert write_frozen(tmp_path, file) == read_frozen(file)
    with pytest.raises(SystemExit, match="error: "):
        main([str(tmp_path / "nowhere"), str(file)])
    with pytest.raises(SystemExit, match="usage: "):
        main([])


# -- runs


def test_a_row_is_what_a_plain_loop_makes_of_its_settings(folder: str):
    (unit,) = BAKEOFF.units(Options("full", rounds=500, data=folder, datasets=["1_one"], learners=["lints"], seeds=[4]))
    row = {name: values[0] for name, values in BAKEOFF.run(unit).items()}
    assert list(row) == list(COLUMNS)
    world = Classification(ParquetSet(1, folder))
    chance, choice = np.random.SeedSequence(14).spawn(2)
    rounds = world.sample(500, np.random.default_rng(chance))
    learner: Any = learner_of(unit.learner, 3, int(choice.generate_state(1, np.uint64)[0]))
    total = 0.0
    for t, context in enumerate(rounds.contexts):
        decision = learner.act(context)
        reward = float(rounds.table[t, decision.action])
        learner.update(context, decision.action, reward, decision.propensity)
        total += reward
    assert row["mean_reward"] == pytest.approx(total / 30)
    assert (row["position"], row["half"], row["protocol"]) == (3, "confirmation", "fair")
    assert (row["n"], row["d"], row["K"], row["played"]) == (30, 3, 3, 30)
    assert row["cpu_seconds"] >= 0
    again = {name: values[0] for name, values in BAKEOFF.run(unit).items()}
    assert {**again, "cpu_seconds": 0} == {**row, "cpu_seconds": 0}


def test_every_entrant_plays():
    for unit in BAKEOFF.units(Options("quick", rounds=25, datasets=["iris"], seeds=[0])):
        columns = BAKEOFF.run(unit)
        assert list(columns) == list(COLUMNS)
        assert 0 <= columns["mean_reward"][0] <= 1


def test_vw_is_optional():
    """Without the package its learners are left out, and nothing imports it."""
    script = (
        "import importlib.util, sys; find = importlib.util.find_spec\n"
        "sys.modules['vowpalwabbit'] = None\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'vowpalwabbit' else find(name, *more)\n"
        "from o2pl.experiments.bakeoff import BAKEOFF\n"
        "from o2pl.experiments.experiment import Options\n"
        "print(*sorted({unit.learner['name'] for unit in BAKEOFF.units(Options('quick'))}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {name for name in ENTRANTS if not name.startswith("vw-")}


def test_the_default_beats_the_papers_replay_and_chance():
    """The four embedded sets, 200 rounds, two seeds.

    Over seeds 1000 to 1029 the mean gap over the sets of a single seed was .27 ± .025 (lowest .21) to the paper's
    replay and .50 ± .025 (lowest .45) to uniform choice: the bars lie four standard deviations of one seed below.
    """
    rewards: dict[str, list[float]] = {"o2pl": [], "o2pl-replay": [], "uniform": []}
    for unit in BAKEOFF.units(Options("quick", rounds=200, seeds=[0, 1], learners=list(rewards))):
        rewards[unit.learner["name"]].append(BAKEOFF.run(unit)["mean_reward"][0])
    means = {name: float(np.mean(each)) for name, each in rewards.items()}
    assert means["o2pl"] > means["o2pl-replay"] + 0.15
    assert means["o2pl"] > means["uniform"] + 0.4


def test_the_settings_in_the_documents_are_those_that_play():
    shown = Path(__file__).parents[2] / "docs/reproduction/bakeoff/settings.json"
    assert shown.read_bytes() == FROZEN.read_bytes()
