"""Local processes and a real local Ray: the same rows, one thread each, failures kept apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toy_experiment
from toy_experiment import PLAYED, TOY, dies, threads, unsendable

from o2pl.errors import MissingExtra
from o2pl.simulation.engines import Failed, Finished, Local, Ray, UnitEngine
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run

FULL = Options("full")


@pytest.fixture(scope="module")
def ray_engine() -> Iterator[Ray]:
    """One local Ray for the tests of this file: `Ray` uses what is there, and leaves it running."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield Ray()
    ray.shutdown()


@pytest.fixture(params=["local", "ray"])
def engine(request: pytest.FixtureRequest) -> UnitEngine:
    return Local(2) if request.param == "local" else request.getfixturevalue("ray_engine")


def test_ray_makes_the_same_table_as_local_processes(tmp_path: Path, log: Any, ray_engine: Any) -> None:
    report = run(TOY, FULL, out=tmp_path / "ray", engine=ray_engine)
    assert (report.computed, report.failures) == (12, ())
    run(TOY, FULL, out=tmp_path / "local", engine=Local(1))
    assert (tmp_path / "ray/toy.parquet").read_bytes() == (tmp_path / "local/toy.parquet").read_bytes()


def test_real_learners_decide_the_same_on_any_engine(tmp_path: Path, ray_engine: Any) -> None:
    tables = set()
    for name, engine in {"one": Local(1), "two": Local(2), "ray": ray_engine}.items():
        report = run(PLAYED, out=tmp_path / name, engine=engine)
        assert (report.computed, report.failures) == (5, ())
        tables.add((tmp_path / name / "played.parquet").read_bytes())
    assert len(tables) == 1


def test_a_worker_computes_with_one_thread(engine: Any) -> None:
    ((_, outcome),) = engine.compute(threads, TOY.units(FULL)[:1])
    assert isinstance(outcome, Finished)
    assert {name for name, _ in outcome.columns["threads"]} >= {"libscipy_openblas"}
    assert {count for _, count in outcome.columns["threads"]} == {1}


def test_a_worker_that_is_killed_costs_its_unit_alone(engine: Any) -> None:
    outcomes = {unit.number: outcome for unit, outcome in engine.compute(dies, TOY.units(FULL)[:4])}
    assert sorted(outcomes) == [0, 1, 2, 3]
    assert isinstance(outcomes[1], Failed)
    assert "died" in outcomes[1].reason
    assert [outcomes[n].columns for n in (0, 2, 3)] == [{"number": n} for n in (0, 2, 3)]


def test_rows_that_cannot_be_sent_are_a_failure() -> None:
    ((_, outcome),) = Local(1).compute(unsendable, TOY.units(FULL)[:1])
    assert isinstance(outcome, Failed)
    assert "pickle" in outcome.reason


def test_no_units_no_workers() -> None:
    assert list(Local(2).compute(threads, [])) == []


def test_a_function_that_workers_cannot_import_is_said(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from o2pl.simulation.engines import Local\n"
        f"import sys; sys.path.insert(0, {str(Path(toy_experiment.__file__).parent)!r})\n"
        "from toy_experiment import TOY, Options\n"
        "list(Local(1).compute(TOY.run, TOY.units(Options())))\n"
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "__name__ == '__main__'" in result.stderr


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_when_a_run_is_stopped_its_workers_stop_at_once_and_say_nothing(tmp_path: Path, how: str) -> None:
    environment = {**os.environ, "TOY_SLEEP": "60", "TOY_LOG": str(tmp_path / "log")}
    script = [sys.executable, toy_experiment.__file__, str(tmp_path / "out"), "2"]
    with subprocess.Popen(
        script, start_new_session=True, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        while len(toy_experiment.numbers(tmp_path / "log")) < 2:
            time.sleep(0.02)
        if how == "interrupted":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes at once
        else:
            process.kill()
        _, errors = process.communicate(timeout=20)
    assert process.returncode != 0
    assert errors.count("Traceback") == (how == "interrupted"), errors
    assert toy_experiment.ends(process.pid)


def test_without_ray_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"the engine 'ray' needs ray: pip install 'o2pl\[ray\]'"):
        Ray()
