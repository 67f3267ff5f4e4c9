"""Logs from Parquet, CSV and saved learners: what is read is what was written, and bad files say what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import o2pl
from o2pl import InvalidInput
from o2pl.formats import read_log

COLUMNS: dict[str, Any] = {
    "age": [30.0, 41.5, 22.0, 35.0],
    "action": [0, 2, 1, 0],
    "member": [True, False, True, True],
    "reward": [0.0, 1.0, 0.5, 1.0],
    "propensity": [0.5, 0.2, 0.3, 0.5],
}


def written(folder: Path, kind: str, **changes: Any) -> Path:
    columns = {name: values for name, values in (COLUMNS | changes).items() if values is not None}
    path = folder / f"log.{kind}"
    (parquet.write_table if kind == "parquet" else csv.write_csv)(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_columns_by_their_names(kind: str, tmp_path: Path) -> None:
    log = read_log(written(tmp_path, kind), reward_range=(0, 1), n_actions=4)
    np.testing.assert_array_equal(log.contexts, np.array([[30, 1], [41.5, 0], [22, 1], [35, 1]], np.float32))
    assert log.contexts.dtype == np.float32
    assert log.actions.tolist() == [0, 2, 1, 0]
    assert log.rewards.tolist() == COLUMNS["reward"]
    assert log.propensities.tolist() == COLUMNS["propensity"]
    assert (log.reward_range, log.n_actions, log.continuous, log.loggers) == ((0, 1), 4, False, None)


def test_other_names_and_chosen_contexts(tmp_path: Path) -> None:
    path = written(tmp_path, "csv", action=None, arm=[1, 0, 0, 1], note=["a", "b", "c", "d"])
    log = read_log(path, action="arm", context=["age"])
    assert log.actions.tolist() == [1, 0, 0, 1]
    assert log.contexts.shape == (4, 1)
    assert log.reward_range is None


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_actions_in_words_and_real_ones(kind: str, tmp_path: Path) -> None:
    log = read_log(written(tmp_path, kind, action=["red", "blue", "red", "green"]))
    assert log.action_names == ("blue", "green", "red")
    assert log.actions.tolist() == [2, 0, 2, 1]
    assert log.action_name(1) == "green"
    real = read_log(written(tmp_path, kind, action=[0.5, 1.0, 2.5, 1.0], propensity=[2.5, 0.1, 0.2, 1.0]))
    assert real.continuous
    assert real.n_actions is None
    assert read_log(written(tmp_path, kind, action=[0.0, 1.0, 2.0, 1.0]), continuous=True).continuous


def test_loggers_with_their_propensities(tmp_path: Path) -> None:
    both = {"propensity_a": [0.5, 0.1, 0.3, 0.9], "propensity_b": [0.4, 0.2, 0.6, 0.5]}
    log = read_log(written(tmp_path, "csv", logger=["a", "b", "a", "b"], **both))
    assert log.logger_names == ("a", "b")
    assert log.by_logger is not None
    assert log.by_logger.tolist() == [[0.5, 0.4], [0.1, 0.2], [0.3, 0.6], [0.9, 0.5]]
    assert log.contexts.shape == (4, 2)
    alone = read_log(written(tmp_path, "csv", logger=[1, 2, 1, 2]))
    assert alone.by_logger is None
    assert alone.loggers is not None
    assert alone.loggers.tolist() == [0, 1, 0, 1]


def test_a_saved_learners_own_log(tmp_path: Path) -> None:
    learner = o2pl.O2PL(3, reward_range=(0, 10), random_state=0)
    learner.partial_fit([[1.0, 2.0], [3.0, 4.0]], [0, 2], [5.0, 10.0], [0.5, 0.25])
    learner.save(tmp_path / "model.o2pl")
    log = read_log(tmp_path / "model.o2pl")
    assert log.rewards.tolist() == [5.0, 10.0]
    assert log.reward_range == (0, 10)
    assert log.propensities.tolist() == [0.5, 0.25]
    assert isinstance(log, o2pl.Interactions)
    assert log.n_actions == 3


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no propensity": (
        {"propensity": None},
        "found columns age, action, member, reward, expected one called 'propensity'",
    ),
    "a missing propensity": ({"propensity": [0.5, None, 0.3, 0.5]}, "propensity, row 1: found nan"),
    "propensity 0": ({"propensity": [0.5, 0.0, 0.3, 0.5]}, "propensity, row 1: found 0.0"),
    "a missing action": ({"action": [0, None, 1, 0]}, "action"),
    "a missing word": ({"action": ["a", None, "b", "a"]}, "action"),
    "a missing reward": ({"reward": [0.0, 1.0, None, 1.0]}, "reward, row 2: found nan"),
    "words in the context": ({"age": ["old", "young", "old", "old"]}, "column 'age': found values such as 'old'"),
    "a missing context": ({"age": [1.0, None, 2.0, 3.0]}, "context, row 1, feature 0: found nan"),
    "no context": ({"age": None, "member": None}, "no context columns"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_bad_files(name: str, kind: str, tmp_path: Path) -> None:
    changes, message = BAD[name]
    with pytest.raises(InvalidInput, match=message):
        read_log(written(tmp_path, kind, **changes))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_without_rows(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"log\.{kind}: found no rows"):
        read_log(written(tmp_path, kind, **{name: [] for name in COLUMNS}))


def test_what_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="found no file"):
        read_log(tmp_path / "nowhere.csv")
    (tmp_path / "noise").write_bytes(b"PAR1 but not really")
    with pytest.raises(InvalidInput, match="noise: expected Parquet, CSV"):
        read_log(tmp_path / "noise")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InvalidInput, match=r"empty\.csv: expected Parquet, CSV"):
        read_log(tmp_path / "empty.csv")
