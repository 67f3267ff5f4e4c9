"""When a log is larger than memory, and how its candidates are compared. The policies: test_same_policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fitting.parquet_logs import write_parquet

import o2pl
from o2pl.errors import InvalidInput
from o2pl.fitting import large_logs
from o2pl.fitting.fit_out_of_core import core_memory_in, fit_out_of_core, free_core_memory, is_larger_than_core
from o2pl.fitting.pass_checkpoints import PassCheckpoints

pytestmark = pytest.mark.filterwarnings("ignore:.*not used as context. 'day' .key of the partitions")


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("500 MB", 5 * 10**8), ("1.5GiB", 1.5 * 2**30), ("2g", 2 * 10**9), ("7", 7)]
)
def test_an_amount_of_memory(text: str, size: float) -> None:
    assert core_memory_in(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "much", "4XB", "1.2.3GB", "0"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected an amount such as 4GB"):
        core_memory_in(text)


def test_parquet_is_compared_with_the_memory_there_is(tmp_path: Path) -> None:
    log = write_parquet(tmp_path / "log", 3000)
    assert is_larger_than_core(log, 100_000)
    assert not is_larger_than_core(log, free_core_memory())
    (tmp_path / "log.csv").write_text("x,action,reward,propensity\n1,0,1,1\n")
    assert not is_larger_than_core(tmp_path / "log.csv", 1)


def test_candidates_are_compared_on_a_sample_and_the_best_learns_from_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_logs, "SAMPLE", 900)
    log = write_parquet(tmp_path / "log", 3000)
    only = ["bandit linear competing", "bandit linear independent"]
    rows = []
    found = fit_out_of_core(
        log, PassCheckpoints(tmp_path / "work", "x"), only=only, passed=lambda one: rows.append(one.rows)
    )
    assert (found.rows, found.sample, found.held_out) == (3000, 900, 900)
    assert {one.name for one in found.candidates} == set(only)
    assert set(rows) == {3000}
    assert "3,000 rows; compared on a sample of 900" in str(found)
    assert found.learner.act({"x0": 1.0, "x1": 0.0, "x2": None, "city": "Oslo", "mobile": True})[0] in (
        "blue", "green", "red"
    )  # fmt: skip
    assert not hasattr(found.learner, "log_")
    reads = o2pl.read_log(log).contexts[:5]
    assert found.learner.predict_proba(reads).shape == (5, 3)


def test_a_log_without_propensities_is_refused(tmp_path: Path) -> None:
    from pyarrow import parquet

    log = write_parquet(tmp_path / "log", 300, files=1) / "day=0" / "rows.parquet"
    parquet.write_table(parquet.read_table(log).drop_columns(["propensity"]), tmp_path / "bare.parquet")
    with pytest.raises(InvalidInput, match="expected a column 'propensity'"):
        fit_out_of_core(tmp_path / "bare.parquet", PassCheckpoints(tmp_path / "work", "x"))
