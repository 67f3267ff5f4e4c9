"""Finished work is never lost, never done twice, and never depends on how it was computed."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import toy_experiment
from toy_experiment import LEARNERS, TOY, WORLDS, ends, numbers

from o2pl.errors import InvalidInput, MissingExtra
from o2pl.extras import EXTRAS
from o2pl.simulation import sources
from o2pl.simulation.engines import Finished, Local, attempt_in_engines
from o2pl.simulation.experiment import Cell, Options
from o2pl.simulation.run_progress import Plain
from o2pl.simulation.runner import run
from o2pl.simulation.store import ResultStore, results, seconds

FULL = Options("full")


class Inline:
    """No processes: for tests of what is kept, not of how it is computed."""

    def compute(self, run: Any, units: Any) -> Iterator[Any]:
        for unit in units:
            yield unit, attempt_in_engines(run, unit)


def test_the_table_is_what_a_plain_loop_computes(tmp_path: Path) -> None:
    report = run(TOY, FULL, out=tmp_path, engine=Inline())
    assert (report.units, report.computed, report.failures) == (12, 12, ())
    expected = []
    for number, (seed, world, learner) in enumerate(itertools.product((0, 1), WORLDS, LEARNERS)):
        unit = TOY.unit(number, FULL)
        columns = toy_experiment.compute(unit)
        expected += [
            (number, world, learner, seed, 3, unit.settings, r, v)
            for r, v in zip(columns["round"], columns["value"], strict=True)
        ]
    table = results(tmp_path, "toy")
    assert table.column_names == ["unit", "world", "learner", "seed", "rounds", "settings", "round", "value"]
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    np.testing.assert_equal(found, expected)
    assert report.table == tmp_path / "toy.parquet"
    took = seconds(tmp_path, "toy")
    assert took["unit"].to_pylist() == list(range(12))
    assert min(took["seconds"].to_pylist()) > 0


def test_killed_twice_it_ends_with_the_rows_of_an_uninterrupted_run(
    tmp_path: Path, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_SLEEP", "0.15")
    moments = random.Random(20)
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    script = [sys.executable, toy_experiment.__file__, str(killed), "2"]
    before: set[Path] = set()
    for _ in range(2):
        process = subprocess.Popen(script, start_new_session=True)
        while len(parts := _parts(killed) - before) < 2 and process.poll() is None:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        assert process.wait() == -signal.SIGKILL, "the run was over before it could be killed"
        assert ends(process.pid)
        assert not (killed / "toy.parquet").exists()
        before |= parts
    kept, started = _parts(killed), len(numbers(log))
    assert 4 <= len(kept) < 12
    last = subprocess.run(script, check=True, capture_output=True, text=True)
    assert int(last.stdout) == 12 - len(kept)
    assert len(numbers(log)) == started + 12 - len(kept)
    assert run(TOY, FULL, out=undisturbed, engine=Local(2)).computed == 12
    assert (killed / "toy.parquet").read_bytes() == (undisturbed / "toy.parquet").read_bytes()
    assert not list(killed.rglob("*.partial"))


def _parts(out: Path) -> set[Path]:
    return set((out / "toy").glob("*.parquet"))


def test_any_number_of_workers_makes_the_same_table(tmp_path: Path, log: Any) -> None:
    run(TOY, FULL, out=tmp_path / "1", engine=Local(1))
    assert numbers(log) == list(range(12))
    run(TOY, FULL, out=tmp_path / "2", engine=Local(2))
    assert (tmp_path / "1/toy.parquet").read_bytes() == (tmp_path / "2/toy.parquet").read_bytes()


def test_only_what_is_missing_is_computed(tmp_path: Path, log: Any) -> None:
    run(TOY, replace(FULL, seeds=[0]), out=tmp_path, engine=Inline())
    first = (tmp_path / "toy.parquet").read_bytes()
    assert numbers(log) == [0, 1, 2, 3, 4, 5]
    run(TOY, FULL, out=tmp_path, engine=Inline())
    assert numbers(log) == list(range(12))
    ResultStore(tmp_path, TOY).part(TOY.unit(4, FULL)).unlink()
    assert run(TOY, FULL, out=tmp_path, engine=Inline()).computed == 1
    assert numbers(log) == sorted([*range(12), 4])
    assert run(TOY, replace(FULL, seeds=[0]), out=tmp_path, engine=Inline()).computed == 0
    assert (tmp_path / "toy.parquet").read_bytes() == first


def test_changed_settings_are_recomputed_and_not_mixed(tmp_path: Path, log: Any) -> None:
    run(TOY, FULL, out=tmp_path, engine=Inline())
    before = (tmp_path / "toy.parquet").read_bytes()
    assert run(TOY, replace(FULL, rounds=1), out=tmp_path, engine=Inline()).computed == 12
    assert set(results(tmp_path, "toy")["round"].to_pylist()) == {1}
    assert run(TOY, FULL, out=tmp_path, engine=Inline()).computed == 0, "the first settings are still there"
    assert (tmp_path / "toy.parquet").read_bytes() == before
    changed = replace(TOY, cells=lambda data: [Cell({**c.world, "size": 2}, c.learner) for c in TOY.cells(data)])
    assert run(changed, FULL, out=tmp_path, engine=Inline()).computed == 12


def test_rows_of_other_sources_are_computed_again_unless_they_are_to_be_kept(
    tmp_path: Path, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older algorithm has the same settings, and often the same version."""
    said: list[str] = []
    with monkeypatch.context() as older:
        older.setattr(sources, "digest_of_sources", lambda run: "older")
        run(TOY, replace(FULL, seeds=[0]), out=tmp_path, engine=Inline())
    kept = run(TOY, FULL, out=tmp_path, engine=Inline(), keep=True, progress=Plain(said.append))
    assert kept.computed == 6
    assert "toy: found rows of 6 units that other sources of o2pl computed; they are kept" in said
    again = run(TOY, FULL, out=tmp_path, engine=Inline(), progress=Plain(said.append))
    assert again.computed == 6
    assert numbers(log) == sorted([*range(6), *range(12)])
    (line,) = (line for line in said if "again" in line)
    found = "toy: found rows of 6 units that other sources of o2pl computed"
    assert line == f"{found}; computing them again (`keep` keeps such rows)"
    assert run(TOY, FULL, out=tmp_path, engine=Inline(), progress=Plain(said.append)).computed == 0
    assert said[-1] == "toy: 0 units to compute, 12 done before"


def test_a_failing_unit_is_reported_and_the_others_go_on(
    tmp_path: Path, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAILS", "two")
    report = run(TOY, FULL, out=tmp_path, engine=Local(2))
    reasons = {unit.number: reason for unit, reason in report.failures}
    assert reasons == {n: f"ValueError: no luck with {'sun' if n % 6 < 3 else 'moon'}" for n in (1, 4, 7, 10)}
    assert set(results(tmp_path, "toy")["learner"].to_pylist()) == {"one", "three"}
    text = ResultStore(tmp_path, TOY).failure(TOY.unit(4, FULL)).read_text()
    assert text.startswith("toy/4 ")
    assert "Traceback" in text
    assert "in compute" in text
    monkeypatch.delenv("TOY_FAILS")
    report = run(TOY, FULL, out=tmp_path, engine=Local(2))
    assert (report.computed, report.failures) == (4, ())
    assert len(results(tmp_path, "toy")) == 36
    assert not list(tmp_path.rglob("failed-*"))


def test_a_unit_that_kills_its_process_is_reported_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_DIES", "three")
    report = run(TOY, Options("quick"), out=tmp_path, engine=Local(2))
    assert [(unit.number, reason) for unit, reason in report.failures] == [(2, "its process died (exit status 7)")]
    assert set(results(tmp_path, "toy")["unit"].to_pylist()) == {0, 1}


def test_rows_that_are_not_as_announced_are_a_failure(tmp_path: Path) -> None:
    other = replace(TOY, columns={"round": "int64", "reward": "double"})
    report = run(other, Options("quick"), out=tmp_path, engine=Inline())
    assert report.table is None
    assert report.failures[0][1] == (
        "o2pl.errors.InvalidInput: toy/0: found columns ['round', 'value'], expected ['reward', 'round']"
    )
    wrong_type = replace(TOY, columns={"round": "int64", "value": "int64"})
    assert "toy/1" in [unit.id for unit, _ in run(wrong_type, FULL, out=tmp_path, engine=Inline()).failures]


def test_one_unit_alone_has_a_table_of_its_own(tmp_path: Path, log: Any) -> None:
    run(TOY, FULL, out=tmp_path, engine=Inline())
    before = (tmp_path / "toy.parquet").read_bytes()
    assert run(TOY, FULL, out=tmp_path, number=7, engine=Inline()).computed == 0
    more = Options("full", seeds=range(3))
    assert run(TOY, more, out=tmp_path, number=17, engine=Inline()).computed == 1
    assert (tmp_path / "toy.parquet").read_bytes() == before
    everything = results(tmp_path, "toy")
    alone = results(tmp_path, "toy/7")
    assert alone.equals(everything.filter(pa.compute.equal(everything["unit"], 7)).combine_chunks())
    assert results(tmp_path, "toy/17")["seed"].to_pylist() == [2, 2, 2]


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="a run of 'wheel' with this folder"):
        results(tmp_path, "wheel")
    with pytest.raises(InvalidInput, match="found no unit"):
        run(TOY, Options(seeds=[]), out=tmp_path, engine=Inline())
    rare = replace(TOY, cells=lambda data: [Cell({"name": "sun"}, {"name": "rare"}, needs="odd")])
    monkeypatch.setitem(EXTRAS, "odd", ("nobody_has_this",))
    with pytest.raises(MissingExtra, match=r"the learner 'rare' needs nobody_has_this: pip install 'o2pl\[odd\]'"):
        run(rare, Options(learners=["rare"], datasets=["sun"]), out=tmp_path, engine=Inline())


def test_stopping_half_way_keeps_what_is_finished(tmp_path: Path, log: Any) -> None:
    class Interrupted:
        def compute(self, run: Any, units: Any) -> Iterator[Any]:
            for unit in units[:5]:
                yield unit, Finished(run(unit), 0.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(TOY, FULL, out=tmp_path, engine=Interrupted())
    assert run(TOY, FULL, out=tmp_path, engine=Inline()).computed == 7
