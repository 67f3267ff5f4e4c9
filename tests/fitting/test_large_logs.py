"""Parquet larger than memory: what the first pass finds, what the copy holds, and what is said of bad files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.fitting.parquet_logs import write_parquet

import o2pl
from o2pl.errors import InvalidInput
from o2pl.fitting import large_logs
from o2pl.fitting.large_logs import begin_with_large_log, copy_large_log, scan_large_log
from o2pl.formats import files
from o2pl.formats.bad_rows import BadRows

pytestmark = pytest.mark.filterwarnings("ignore:.*not used as context. 'day' .key of the partitions")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(files, "_BATCH", 700)
    return write_parquet(tmp_path / "log", 3000)


def test_one_pass_says_what_there_is(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = o2pl.read_log(log)
    found = scan_large_log(log, None, BadRows("log"), 0)
    assert (found.rows, found.n_actions, found.action_names) == (3000, 3, ("blue", "green", "red"))
    assert found.reward_range == (0.0, 1.0)
    np.testing.assert_array_equal(found.sample.actions, whole.actions)  # no longer than a sample: all rows
    monkeypatch.setattr(large_logs, "SAMPLE", 500)
    sample = scan_large_log(log, None, BadRows("log"), 0).sample
    assert len(sample) == 500
    x = np.asarray(whole.contexts["x0"])
    places = np.flatnonzero(np.isin(x, sample.contexts["x0"]))
    np.testing.assert_array_equal(x[places], sample.contexts["x0"])  # in the order of the log,
    assert places.max() > 2500  # from its beginning to its end
    assert places.min() < 500


def test_the_copy_is_what_a_learner_reads_in_memory(log: Path, tmp_path: Path) -> None:
    found, learner = scan_large_log(log, None, BadRows("log"), 0), o2pl.Bandit(reward_range=(0, 1))
    engine = begin_with_large_log(learner, found.sample)
    copy_large_log(found, learner, engine, tmp_path / "copy", BadRows("log"))
    mapped = engine.log.empty(tmp_path / "copy", rows=found.rows).columns
    expected = o2pl.Bandit(reward_range=(0, 1)).fit(o2pl.read_log(log)).log_
    for name in ("contexts", "actions", "rewards", "propensities"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(expected, name))
    size = sum(file.stat().st_size for file in (tmp_path / "copy").iterdir())
    assert size == 3000 * large_logs.bytes_per_row_of_large_log(engine.log)


def test_a_bad_row_is_named_by_its_number_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BATCH", 10)
    rows = {"x": np.arange(40.0), "action": np.arange(40) % 2, "reward": np.zeros(40), "propensity": np.full(40, 0.5)}
    rows["propensity"][33] = -1
    parquet.write_table(pa.table(rows), tmp_path / "log.parquet")
    with pytest.raises(InvalidInput, match=r"log.parquet, row 33: column 'propensity': found -1"):
        scan_large_log(tmp_path / "log.parquet", None, BadRows("log.parquet"), 0)
    some = BadRows("log.parquet", 1)
    assert scan_large_log(tmp_path / "log.parquet", None, some, 0).rows == 39
    assert len(some.found) == 1


def test_numbers_from_1_are_refused_as_they_are_in_memory(tmp_path: Path) -> None:
    rows = {"x": np.arange(400.0), "action": 1 + np.arange(400) % 2, "reward": np.zeros(400)}
    parquet.write_table(pa.table({**rows, "propensity": np.full(400, 0.5)}), tmp_path / "log.parquet")
    with pytest.raises(InvalidInput, match="found numbers from 1 to 2 and never 0"):
        scan_large_log(tmp_path / "log.parquet", None, BadRows("log"), 0)


@pytest.mark.parametrize("where", ["footer", "middle"])
def test_a_file_that_cannot_be_read_is_named(log: Path, where: str) -> None:
    file = log / "day=1" / "rows.parquet"
    content = bytearray(file.read_bytes())
    if where == "footer":
        content[-8:] = b"\0" * 8
    else:
        content[4:4000] = bytes(3996)
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"log/day=1/rows.parquet: cannot be read") as said:
        scan_large_log(log, None, BadRows("log"), 0)
    assert "Write it again or remove it" in str(said.value)


@pytest.mark.parametrize(
    ("column", "said"), [("context", "contexts as text or action sets"), ("real", "real-valued actions")]
)
def test_what_is_not_rows_of_numbers_is_refused(tmp_path: Path, column: str, said: str) -> None:
    rows: dict[str, Any] = {"reward": [0.0, 1.0], "propensity": [0.5, 0.5], "action": [0, 1], "x": [1.0, 2.0]}
    rows |= {"context": ["{}", "{}"]} if column == "context" else {"action": [0.5, 1.5]}
    parquet.write_table(pa.table(rows), tmp_path / "log.parquet")
    with pytest.raises(InvalidInput, match=f"found {said}, expected columns of numbers.*--in-memory"):
        scan_large_log(tmp_path / "log.parquet", None, BadRows("log"), 0)


def test_without_room_on_the_disk_nothing_is_left(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, learner = scan_large_log(log, None, BadRows("log"), 0), o2pl.Bandit()
    engine = begin_with_large_log(learner, found.sample)
    reserve = os.posix_fallocate

    def full(file: int, offset: int, size: int) -> None:
        if size > 30_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        reserve(file, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InvalidInput, match=r"free disk space, expected .* GB for a copy of the log. Free some"):
        copy_large_log(found, learner, engine, tmp_path / "copy", BadRows("log"))
    assert not (tmp_path / "copy").exists()


def test_drop_probabilities_that_differ_need_memory(log: Path, tmp_path: Path) -> None:
    table = parquet.read_table(log)
    rates = {"alike": np.full(len(table), 0.5), "differ": np.resize([0.0, 0.5], len(table))}
    for name, column in rates.items():
        path = tmp_path / f"{name}.parquet"
        parquet.write_table(table.append_column("drop_probability", pa.array(column)), path)
    assert scan_large_log(tmp_path / "alike.parquet", None, BadRows("log"), 0).sample.row_weights is None
    with pytest.raises(
        InvalidInput, match=r"found drop probabilities from 0 to 0.5, which need weights: .*--in-memory"
    ):
        scan_large_log(tmp_path / "differ.parquet", None, BadRows("log"), 0)
