"""What is said of a log: numbers that can be checked, warnings where they are due, and a next command."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.formats.vw_logs import events

import o2pl
from o2pl.formats import describe
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.dsjson import read_dsjson
from o2pl.formats.log_tables import log_of_log_table


def log(n: int = 2000, **changes: Any) -> o2pl.Interactions:
    rng = np.random.default_rng(0)
    actions = rng.integers(3, size=n)
    contexts = pa.table(
        {"age": [None if k % 10 == 0 else float(k % 7) for k in range(n)], "city": rng.choice(["a", "b"], n).tolist()}
    )
    given = {"actions": actions, "rewards": (rng.random(n) < 0.3).astype(float), "propensities": np.full(n, 1 / 3)}
    columns = given | changes
    return o2pl.Interactions(contexts, columns["actions"], columns["rewards"], columns["propensities"])


def test_a_healthy_log() -> None:
    found = describe(log(), "log.parquet")
    said = str(found)
    assert found.warnings == ()
    assert found.sections["rows"] == ("2,000",)
    assert "age: numbers, 10.0% missing" in said
    assert "city: strings, 2 different" in said
    assert "0 or 1, mean 0.29" in said
    assert "learning, and evaluation of any policy: propensities fall to 0.33" in said
    assert said.endswith("next: o2pl fit log.parquet --out model.o2pl --rewards 0,1")


def test_what_speaks_against_a_log() -> None:
    n = 2000
    rng = np.random.default_rng(1)
    one_action = describe(log(actions=np.zeros(n, int)))
    assert any("Only one action was played" in one for one in one_action.warnings)
    assert one_action.sections["use"] == ("none: see the warnings",)
    assert any("Every reward is 1" in one for one in describe(log(rewards=np.ones(n))).warnings)
    wrong = describe(log(propensities=np.full(n, 0.25)))
    assert any("do not match the actions" in one for one in wrong.warnings)
    assert "do not trust weighted estimates" in wrong.sections["use"][0]
    assert any("All propensities are 1" in one for one in describe(log(propensities=np.ones(n))).warnings)
    rare = np.full(n, 1 / 3)
    rare[7] = 1e-6
    assert any("Row 7 has the propensity 1e-06" in one for one in describe(log(propensities=rare)).warnings)
    moving = (rng.random(n) < np.linspace(0.1, 0.9, n)).astype(float)
    assert any("Rewards change over the log" in one for one in describe(log(rewards=moving)).warnings)
    never = describe(log(actions=np.where(np.arange(n) % 2, 0, 4)))
    assert any("3 of 5 actions were never played" in one for one in never.warnings)


def test_every_kind_of_log() -> None:
    pytest.importorskip("msgspec")
    tables = read_dsjson([json.dumps(event).encode() for event in events(80)], BadRows("log"))
    sets = describe(log_of_log_table(pa.concat_tables(tables), BadRows("log")), "vw.dsjson")
    assert "sets of 2 to 5 actions" in sets.sections["actions"][0]
    assert 'o2pl.Bandit(policy="hashed actionwise", reward_range=(0, 1))' in sets.sections["learn"][0]
    rng = np.random.default_rng(0)
    real = describe(o2pl.Interactions(rng.normal(size=(100, 2)), rng.normal(size=100), rng.random(100), np.ones(100)))
    assert "real numbers from" in real.sections["actions"][0]
    few = describe(o2pl.Interactions(np.ones((2, 1)), [0, 1], [-3.0, 5.0], [0.5, 0.5]))
    assert "not tested: fewer than 40 rows" in few.sections["propensities"]
    assert few.following.endswith("--rewards -3,5")
