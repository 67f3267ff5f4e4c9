"""Contexts of log tables: what is a feature, and features of actions beside a context."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import o2pl
from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import read_file_tables, write_file_tables

N = 60
G = np.random.default_rng(0)
ACTIONS = [[{"kind": "a", "price": 1.5}, {"kind": "b"}, {"kind": "c"}][: 2 + row % 2] for row in range(N)]
PLAYED = {"action": G.integers(2, size=N), "reward": G.random(N), "propensity": np.full(N, 0.4)}


def written(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({**columns, **PLAYED}), path)
    return path


@pytest.mark.parametrize("form", ["text", "structures", "csv", "dsjson"])
def test_actions_beside_a_context(form: str, tmp_path: Path) -> None:
    """Features of the actions in a column of their own, and shared ones as JSON: sets, in every format."""
    shared = [json.dumps({"user": {"id": f"u{row % 5}"}}) for row in range(N)]
    given = ACTIONS if form == "structures" else [json.dumps(each) for each in ACTIONS]
    path = written(tmp_path / "log.parquet", context=shared, actions=given)
    if form in ("csv", "dsjson"):
        write_file_tables(tmp_path / f"again.{form}", read_file_tables(path, BadRows("log")))
        path = tmp_path / f"again.{form}"
    log = o2pl.read_log(path)
    assert log.kind == "dictionaries"
    assert log.n_actions is None
    plain = o2pl.Interactions(
        [(json.loads(text), actions) for text, actions in zip(shared, ACTIONS, strict=True)],
        log.actions, log.rewards, log.propensities, ids=log.ids,
    )  # fmt: skip
    one, other = (o2pl.Bandit(random_state=0).fit(each) for each in (log, plain))
    np.testing.assert_array_equal(one.predict_proba(plain.contexts), other.predict_proba(plain.contexts))


def test_features_of_actions_in_two_places(tmp_path: Path) -> None:
    shared = [json.dumps({"user": "u", "_multi": each}) for each in ACTIONS]
    path = written(tmp_path / "log.parquet", context=shared, actions=[json.dumps(each) for each in ACTIONS])
    with pytest.raises(InvalidInput, match=r"log.parquet, row 0: found .* in `actions` and in `_multi` of `context`"):
        o2pl.read_log(path)


def test_keys_ids_and_times_are_no_features(tmp_path: Path) -> None:
    for day in ("2026-11-16", "2026-11-17"):
        about = {"age": G.normal(size=N), "id": [f"{day}-{row}" for row in range(N)], "Timestamp": np.arange(N)}
        written(tmp_path / "log" / f"day={day}" / "country=IT" / "part.parquet", **about)
    with pytest.warns(
        UserWarning,
        match=r"^log: not used as context: 'id' \(an id\), 'Timestamp' \(a time of the decision\),"
        r" 'day' \(key of the partitions\), 'country' .*: context=\[...\]$",
    ):
        log = o2pl.read_log(tmp_path / "log")
    assert list(log.contexts.columns) == ["age"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = o2pl.read_log(tmp_path / "log", context=["age", "day"])
    assert list(asked.contexts.columns) == ["age", "day"]
    learner = o2pl.Bandit(random_state=0).fit(log)
    assert learner.predict_proba([{"age": 1.0}]).shape == (1, 2)


def test_the_index_of_a_data_frame_is_no_feature(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    about = {"age": [1.0, 2.0, 3.0], "action": [0, 1, 0], "reward": 1.0, "propensity": 0.5}
    pd.DataFrame(about, index=[7, 8, 5]).to_parquet(tmp_path / "log.parquet")
    pd.DataFrame(about | {"Unnamed: 0": 1}).to_csv(tmp_path / "log.csv")  # read from CSV, and written again
    for name in ("log.parquet", "log.csv"):
        with pytest.warns(UserWarning, match=r"\(the index of a data frame\)"):
            assert list(o2pl.read_log(tmp_path / name).contexts.columns) == ["age"]


def test_nothing_but_keys(tmp_path: Path) -> None:
    written(tmp_path / "log" / "day=1" / "part.parquet")
    with pytest.raises(InvalidInput, match=r"found no context columns.*'day' \(key of the partitions\)"):
        o2pl.read_log(tmp_path / "log")
