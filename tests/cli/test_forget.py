"""`o2pl forget MODEL|LOG`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import o2pl
from o2pl.cli.forget import forget_person


def test_a_model_and_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [f"e{k}" for k in range(40)]
    frame = pd.DataFrame({"event_id": ids, "age": np.arange(40), "action": [0, 1] * 20, "reward": [0, 1] * 20})
    frame.assign(propensity=0.5).to_csv(tmp_path / "log.csv", index=False)
    o2pl.Bandit(random_state=0).fit(o2pl.read_log(tmp_path / "log.csv")).save(tmp_path / "model.o2pl")
    pd.DataFrame({"event_id": ids[:3]}).to_csv(tmp_path / "people.csv", index=False)
    for name in ("model.o2pl", "log.csv"):
        forget_person(tmp_path / name, event=["e9"], events=tmp_path / "people.csv")
        assert "4 " in capsys.readouterr().out
        assert len(o2pl.read_log(tmp_path / name)) == 36
    forget_person(tmp_path / "log.csv", where="age=20")
    assert "1 rows erased" in capsys.readouterr().out
    with pytest.raises(o2pl.InvalidInput, match="expected --event"):
        forget_person(tmp_path / "model.o2pl", where="age=20")
    with pytest.raises(o2pl.InvalidInput, match="with options for a database"):
        forget_person(tmp_path / "log.csv", where="age=20", app="a")
    with pytest.raises(o2pl.InvalidInput, match="neither --where nor --event"):
        forget_person(tmp_path / "log.csv")
    o2pl.load(tmp_path / "model.o2pl").snapshot().save(tmp_path / "policy.o2pl")
    with pytest.raises(o2pl.InvalidInput, match="without its log"):
        forget_person(tmp_path / "policy.o2pl", event=["e9"])
