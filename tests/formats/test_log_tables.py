"""Logs from Parquet, CSV and saved learners: what is read is what was written, and bad files say what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from tests.formats.vw_logs import events, write_events

import o2pl
from o2pl import InvalidInput
from o2pl.data.decisions import decision_number_of
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.sets import dictionary_sets
from o2pl.formats import read_log
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import read_file_tables, write_file_tables
from o2pl.formats.log_tables import bad_rows_of_log_table

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
    assert list(log.contexts.columns) == ["age", "member"]
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
        "found columns age, action, member, reward, expected a column 'propensity'",
    ),
    "a missing propensity": ({"propensity": [0.5, None, 0.3, 0.5]}, "1: column 'propensity': found nan, expected a n"),
    "propensity 0": (
        {"propensity": [0.5, 0.0, 0.3, 0.5]},
        "1: column 'propensity': found 0, expected a number above 0",
    ),
    "propensity 2": ({"propensity": [0.5, 2.0, 0.3, 0.5]}, r"propensity, row 1: found 2.0, expected a prob"),
    "a missing action": ({"action": [0, None, 1, 0]}, "1: column 'action': found a missing value"),
    "a missing word": ({"action": ["a", None, "b", "a"]}, "1: column 'action': found a missing value"),
    "a missing reward": ({"reward": [0.0, 1.0, None, 1.0]}, "2: column 'reward': found nan, expected a finite number"),
    "words for rewards": ({"reward": ["0", "1", "much", "1"]}, "2: column 'reward': found 'much', expected a finite n"),
    "no context": ({"age": None, "member": None}, "no context columns"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_bad_files(name: str, kind: str, tmp_path: Path) -> None:
    changes, message = BAD[name]
    if message[0].isdecimal():  # a line of CSV, a row of Parquet
        row = int(message[0])
        message = (f"log.csv, line {row + 2}" if kind == "csv" else f"log.parquet, row {row}") + message[1:]
    with pytest.raises(InvalidInput, match=message):
        read_log(written(tmp_path, kind, **changes))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_words_times_and_missing_values_in_the_context(kind: str, tmp_path: Path) -> None:
    age: list[Any] = [1.0, None, 2.0, 3.0]
    log = read_log(written(tmp_path, kind, age=age, city=["Rome", None, "Oslo", "Rome"]))
    np.testing.assert_array_equal(log.contexts["age"], [1, np.nan, 2, 3])
    assert log.contexts["city"].tolist() == ["Rome", None, "Oslo", "Rome"]
    learner = o2pl.Bandit(policy="linear", random_state=0).fit(log)
    assert learner.act({"age": 3, "city": "Rome", "member": True}).propensity > 0


def test_frames_are_logs(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    log = read_log(pd.DataFrame(COLUMNS), reward_range=(0, 1))
    np.testing.assert_array_equal(log.contexts, read_log(written(tmp_path, "csv")).contexts)
    with pytest.raises(InvalidInput, match="frame, row 1: column 'reward': found nan"):
        read_log(pd.DataFrame(COLUMNS | {"reward": [1.0, None, 0.0, 1.0]}))


def test_some_bad_rows_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x,action,reward,propensity\n1,0,1,0.5\n2,1\n3,1,much,0.5\n4,1,1,0\n5,1,0,.5\n")
    bad = bad_rows_of_log_table(path, "csv", 3)
    log = read_log(path, skip_bad=bad)
    assert log.contexts["x"].tolist() == [1, 5]
    assert log.rewards.tolist() == [1, 0]
    assert bad.found == [
        "log.csv, line 3: found 2 values, expected 4",
        "log.csv, line 4: column 'reward': found 'much', expected a finite number",
        "log.csv, line 5: column 'propensity': found 0, expected a number above 0",
    ]
    with pytest.raises(InvalidInput, match=r"log.csv, line 5: .* \(3 bad rows, expected at most 2\)"):
        read_log(path, skip_bad=2)
    with pytest.raises(InvalidInput, match=r"log.csv, line 3: found 2 values, expected 4$"):
        read_log(path)
    path.write_text("x,action,reward,propensity\n4,1,1,0\n")
    with pytest.raises(InvalidInput, match="found no usable row"):
        read_log(path, skip_bad=9)


def test_features_of_each_action_beside_what_is_shared(tmp_path: Path) -> None:
    items: list[Any] = [[{"kind": "a"}, {"kind": "b"}], [{"kind": "a"}, {"kind": None}, {"kind": "c"}]]
    columns = {"user": ["u", "v"], "action": [1, 2], "reward": [0.0, 1.0], "propensity": [0.5, 0.3]}
    for actions in (items, [json.dumps(one) for one in items]):
        parquet.write_table(pa.table(columns | {"actions": actions}), tmp_path / "log.parquet")
        log = read_log(tmp_path / "log.parquet")
        assert log.contexts.sizes.tolist() == [2, 3]
        assert log.contexts[0] == ({"user": "u"}, items[0])
        assert log.n_actions is None
        o2pl.Bandit(policy="hashed actionwise", random_state=0).fit(log)


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    for part, rows in (("a", slice(0, 2)), ("b", slice(2, 4))):
        (tmp_path / "log" / f"logger={part}").mkdir(parents=True)
        columns = {name: values[rows] for name, values in COLUMNS.items()}
        parquet.write_table(pa.table(columns), tmp_path / "log" / f"logger={part}" / "part.parquet")
    log = read_log(tmp_path / "log")
    assert log.logger_names == ("a", "b")
    assert log.rewards.tolist() == COLUMNS["reward"]
    assert list(log.contexts.columns) == ["age", "member"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_without_rows(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"log\.{kind}: found no rows"):
        read_log(written(tmp_path, kind, **{name: [] for name in COLUMNS}))


def test_what_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="found no file"):
        read_log(tmp_path / "nowhere.csv")
    (tmp_path / "noise").write_bytes(b"PAR1 but not really")
    with pytest.raises(InvalidInput, match="noise: expected Parquet, Arrow, CSV"):
        read_log(tmp_path / "noise")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InvalidInput, match=r"empty\.csv: found an empty file, expected Parquet"):
        read_log(tmp_path / "empty.csv")


def test_an_event_that_comes_twice_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("event_id,x,action,reward,propensity\na,1,0,1,0.5\nb,2,1,0,0.5\na,1,0,1,0.5\n")
    with pytest.raises(InvalidInput, match="line 4: column 'event_id': found 'a', which is also in row 0"):
        read_log(path)
    log = read_log(path, skip_bad=1)
    assert len(log) == 2
    assert log.ids.tolist() == [decision_number_of("a"), decision_number_of("b")]


def test_slots_of_one_event_are_decisions_of_their_own() -> None:
    columns = {"event_id": ["a", "a", None], "slot": [0, 1, 0], "x": [1, 2, 3]}
    log = read_log(pa.table(columns | {"action": [0, 1, 0], "reward": [1, 0, 1], "propensity": [0.5] * 3}))
    assert len(set(log.ids.tolist())) == 3


def test_rows_that_the_logger_dropped_become_weights(tmp_path: Path) -> None:
    """pdrop: each kept event stands for 1/(1 - pdrop); VW counts it as that many examples."""
    vw = pytest.importorskip("vowpalwabbit")
    made = [{**e, "pdrop": [0.0, 0.5, 0.9][k % 3]} for k, e in enumerate(events(60)) if "_label_cost" in e]
    made = [{k: v for k, v in e.items() if k != "_skipLearn"} for e in made]
    path = write_events(tmp_path / "log.dsjson", made)
    log = o2pl.read_log(path)
    assert log.row_weights == pytest.approx([1 / (1 - e["pdrop"]) for e in made])
    driver = vw.Workspace(f"--cb_explore_adf --dsjson -d {path} --quiet")
    driver.run_parser()
    assert log.row_weights.sum() == pytest.approx(driver.get_weighted_examples(), rel=1e-5)
    driver.finish()
    for ending in ("parquet", "csv"):  # the round trip keeps them
        write_file_tables(tmp_path / f"log.{ending}", read_file_tables(path, BadRows("log")))
        again = o2pl.read_log(tmp_path / f"log.{ending}")
        assert again.row_weights == pytest.approx(log.row_weights)
        write_file_tables(tmp_path / "again.dsjson", read_file_tables(tmp_path / f"log.{ending}", BadRows("log")))
        assert o2pl.read_log(tmp_path / "again.dsjson").row_weights == pytest.approx(log.row_weights)
    missing = write_events(
        tmp_path / "some.dsjson", [{**e, "pdrop": None if k % 2 else 0.5} for k, e in enumerate(made)]
    )
    assert set(np.asarray(o2pl.read_log(missing).row_weights)) == {1.0, 2.0}
    made[4]["pdrop"] = 1.0  # VW ignores such an event
    found = r"log.dsjson, row 4: column 'drop_probability' .pdrop.: found 1, expected a number from 0 to below 1"
    with pytest.raises(InvalidInput, match=found):
        o2pl.read_log(write_events(path, made))
    assert len(o2pl.read_log(path, skip_bad=1)) == len(made) - 1


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("odd", [False, True])
def test_json_is_hashed_once_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: bool, stored: bool
) -> None:
    made = [event for event in events(60) if event.get("_label_cost") is not None and not event.get("_skipLearn")]
    if odd:
        made[7]["c"]["User"]["big"] = 0.125
    text = "\n".join(json.dumps(event) for event in made)
    if odd:
        text = text.replace("0.125", "1e-999")  # below all doubles: left to the slow path
    path = tmp_path / "log.dsjson"
    path.write_text(text)
    monkeypatch.setattr("o2pl.formats.context_columns._BLOCK", 7)
    if stored:
        tables = pa.concat_tables(read_file_tables(path, BadRows(path.name)))
        path = path.with_suffix(".parquet")
        write_file_tables(path, [tables])
    log = o2pl.read_log(path)
    plain = [json.loads(line)["c"] for line in text.splitlines()]
    assert (log.contexts.hashed is None) == odd
    assert log.contexts.sizes.tolist() == [len(context["_multi"]) for context in plain]
    assert list(log.contexts) == plain
    assert list(log.contexts[20:3:-2]) == plain[20:3:-2]
    for rows in (slice(None), slice(20, 3, -2), np.array([5, 5, 0])):
        chosen = [plain[row] for row in np.arange(len(plain))[rows]]
        both = [dictionary_sets(DictionaryReader(12), each) for each in (log.contexts[rows], chosen)]
        assert both[0].offsets.tolist() == both[1].offsets.tolist()
        for name in ("indices", "values", "offsets"):
            assert getattr(both[0].values, name).tobytes() == getattr(both[1].values, name).tobytes()
