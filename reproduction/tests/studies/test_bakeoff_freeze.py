from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2pl.errors import InvalidInput
from o2pl.simulation.description import built
from o2pl_reproduction.studies.bakeoff_freeze import freeze, main, write_frozen
from o2pl_reproduction.studies.bakeoff_learners import (
    ENTRANTS,
    FROZEN,
    candidate_learners,
    frozen_learners,
    read_frozen,
)


def tuning_rows(rewards: dict[str, list[float]], sets: dict[str, str] | None = None) -> pa.Table:
    """Rows of `family` -> the mean reward of each candidate, on two sets whose rewards lie ±0.1 around it."""
    made = []
    settings = {each.description["name"]: dict(each.description) for each in candidate_learners()}
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


def test_freezing_takes_the_best_mean_and_the_first_of_equals() -> None:
    greedy = [0.5, 0.6, 0.75, 0.75, 0.3, 0.2, 0.1, 0.0]
    ridge = [0.1] * 7 + [0.2]
    frozen = freeze(tuning_rows({"logistic-greedy": greedy, "ridge-greedy": ridge}), "2026-01-31")
    assert set(frozen) == {"logistic-greedy", "ridge-greedy"}
    entry = frozen["logistic-greedy"]
    assert entry["settings"] == ENTRANTS["logistic-greedy"].candidates[2]
    assert entry["mean_reward"] == pytest.approx(0.75)
    assert [each["mean_reward"] for each in entry["candidates"]] == pytest.approx(greedy)
    assert (entry["tried"], entry["sets"], entry["seeds"], entry["rounds"]) == (8, 2, [1000, 1001], 500)
    assert entry["date"] == "2026-01-31"
    assert frozen["ridge-greedy"]["settings"] == ENTRANTS["ridge-greedy"].candidates[7]


def test_freezing_refuses_rows_that_do_not_compare() -> None:
    with pytest.raises(InvalidInput, match="expected all 8 settings on the same sets and seeds"):
        freeze(tuning_rows({"logistic-greedy": [0.5] * 7}), "today")
    rows = tuning_rows({"logistic-greedy": [0.5] * 8})
    with pytest.raises(InvalidInput, match="logistic-greedy: found runs"):
        freeze(rows.slice(1), "today")
    opened = tuning_rows({"logistic-greedy": [0.5] * 8}, {"7_seven": "tuning", "3_three": "confirmation"})
    with pytest.raises(InvalidInput, match="confirmation half \\(3_three\\)"):
        freeze(opened, "today")


def test_the_frozen_file_is_what_the_bakeoff_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "frozen.json"
    file.write_bytes(FROZEN.read_bytes())
    steps = [0.0] * 7 + [1.0]
    rows = tuning_rows(dict.fromkeys(("o2pl", "ridge-greedy", "o2pl-replay-tuned"), steps))
    pq.write_table(rows, tmp_path / "bakeoff-tuning.parquet")
    main([str(tmp_path), str(file)])
    assert "ridge-greedy " in capsys.readouterr().out
    before = {each.description["name"]: each.description for each in frozen_learners()}
    after = {each.description["name"]: each.description for each in frozen_learners(file)}
    changed = {name for name in after if before[name] != after[name]}
    assert changed == {
        "ridge-greedy",
        "o2pl-replay-tuned",
    }  # O2PL plays as its constructor makes it, whatever was frozen
    assert after["ridge-greedy"]["params"]["l2"] == 1000.0
    learner: Any = built(after["o2pl-replay-tuned"], n_actions=2, random_state=0)
    assert learner.get_params()["schedule"] == ENTRANTS["o2pl-replay-tuned"].candidates[7]["schedule"]
    assert write_frozen(tmp_path, file) == read_frozen(file)
    with pytest.raises(SystemExit, match="error: "):
        main([str(tmp_path / "nowhere"), str(file)])
    with pytest.raises(SystemExit, match="usage: "):
        main([])
