"""`o2pl convert`, as one types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.formats.vw_logs import close, events, learned, write_events
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app

pytest.importorskip("msgspec")


def run(*arguments: str | Path, status: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, (done.output, done.exception)
    return done.stdout, done.stderr


def test_vw_learns_the_same_after_conversions(tmp_path: Path) -> None:
    pytest.importorskip("vowpalwabbit")
    original = write_events(tmp_path / "original.dsjson", [e for k, e in enumerate(events(150)) if k % 7])
    said, _ = run("convert", original, tmp_path / "log.parquet")
    assert said == f"128 rows: {tmp_path / 'log.parquet'}\n"
    run("convert", tmp_path / "log.parquet", tmp_path / "again.dsjson")
    weights = learned(original, "--cb_explore_adf --dsjson")
    assert learned(tmp_path / "again.dsjson", "--cb_explore_adf --dsjson") == weights
    run("convert", tmp_path / "log.parquet", tmp_path / "log.csv")
    run("convert", tmp_path / "log.csv", tmp_path / "third.dsjson.gz")
    assert close(learned(tmp_path / "third.dsjson.gz", "--cb_explore_adf --dsjson"), weights, 1e-6)


def test_bad_lines_stop_it_or_are_said(tmp_path: Path) -> None:
    log = write_events(tmp_path / "log.dsjson", events(5)[1:])
    with log.open("a") as file:
        file.write(json.dumps(events(1)[0])[:200])
    out = tmp_path / "log.parquet"
    _, said = run("convert", log, out, status=2)
    assert said == "o2pl: log.dsjson, line 5: found no complete JSON object (Input data was truncated)\n"
    assert not out.exists()
    shown, said = run("convert", log, out, "--skip-bad", "1")
    assert shown == f"4 rows: {out}\n"
    assert said.startswith("skipped: log.dsjson, line 5: found no complete")
    _, said = run("convert", log, tmp_path / "log.xlsx", status=2)
    assert "log.xlsx: found the file extension '.xlsx'" in said


def test_the_log_of_a_saved_learner(tmp_path: Path) -> None:
    learner = o2pl.O2PL(2, policy="linear", random_state=0)
    learner.partial_fit([[1.0, 2.0], [3.0, 4.0]], [0, 1], [0.0, 1.0], [0.5, 0.5])
    learner.save(tmp_path / "model.o2pl")
    run("convert", tmp_path / "model.o2pl", tmp_path / "log.csv")
    np.testing.assert_array_equal(o2pl.read_log(tmp_path / "log.csv").contexts, learner.log_.contexts)
    assert "rows of 2 numbers" in run("describe", tmp_path / "model.o2pl")[0]


def test_json_of_another_shape(tmp_path: Path) -> None:
    path, mapping = (
        tmp_path / "log.jsonl",
        "context=$.user, items=$.offers[*], chosen=$.shown, reward=$.click, propensity=$.p",
    )
    event = {"user": {"age": 3}, "offers": [{"kind": "news"}, {"kind": "sport"}], "shown": 1, "click": 1, "p": 0.5}
    path.write_text("".join(json.dumps(event | {"click": k % 2}) + "\n" for k in range(40)))
    said, _ = run("convert", path, tmp_path / "log.dsjson", "--map", mapping)
    assert said.startswith("40 rows")
    first = json.loads((tmp_path / "log.dsjson").read_text().splitlines()[0])
    assert (first["_label_cost"], first["_labelIndex"], first["c"]["_multi"]) == (0, 1, event["offers"])
    assert "sets of 2 actions" in run("describe", path, "--map", mapping)[0]
    _, said = run("describe", path, "--map", mapping.replace("$.p", "$.q"), status=2)
    assert said.startswith("o2pl: log.jsonl, line 1: $.q: found nothing there (fields: user, offers, shown, click, p)")
    run("fit", path, "--out", tmp_path / "m.o2pl", "--map", mapping, "--candidates", "bandit", "--rewards", "0,1")
    assert "rows" in run(
        "evaluate", path, "--map", mapping, "--policy", tmp_path / "m.o2pl", "--rewards", "0,1", "--figure",
        tmp_path / "e.png",
    )[0]  # fmt: skip
