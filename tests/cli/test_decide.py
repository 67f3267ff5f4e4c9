"""`o2pl decide` and `o2pl join`, as one types them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app


def run(*arguments: str, status: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == status, (done.output, done.exception)
    return done.stdout, done.stderr


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_night_and_the_week_after(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 80, 300)
    Path("customers.csv").write_text("age\n" + "".join(f"{age}\n" for age in ages))
    fitted = o2pl.Bandit(actions=["mail", "none"], random_state=0)
    fitted.fit([{"age": float(age)} for age in ages], ["mail", "none"] * 150, (ages > 40) * 1.0, np.full(300, 0.5))
    fitted.save("model.o2pl")
    before = Path("model.o2pl").read_bytes()
    shown, _ = run("decide", "model.o2pl", "customers.csv", "--out", f"tonight.{form}", "--seed", "1")
    assert shown.startswith(f"300 decisions: tonight.{form}\n")
    assert Path("model.o2pl").read_bytes() == before
    _, said = run("decide", "model.o2pl", "customers.csv", "--out", f"tonight.{form}", status=2)
    assert "expected a new name: its decisions would be lost" in said
    run("convert", f"tonight.{form}", "again.csv")
    ids = [line.split(",")[1].strip('"') for line in Path("again.csv").read_text().splitlines()[1:]]
    Path("bought.csv").write_text("event_id,amount\n" + "".join(f"{name},1\n" for name in ids[::3]) + "0123,1\n")
    shown, said = run(
        "join", f"tonight.{form}", "bought.csv", "--reward", "amount", "--default", "0", "--out", "log.parquet"
    )
    assert "100 decisions have a reward; 200 without one got 0" in shown
    assert said == "note: 1 rewards are of other decisions\n"
    log = o2pl.read_log("log.parquet")
    np.testing.assert_array_equal(log.rewards, np.arange(300) % 3 == 0)
    assert log.event_ids == ids
    run("decide", "model.o2pl", "bought.csv", "--out", "other.csv", status=2)
