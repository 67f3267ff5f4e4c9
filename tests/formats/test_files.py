"""Files of every kind: found out by their content, read alike, written whole or not at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.formats.vw_logs import events, write_events

import o2pl
from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import (
    kind_of_file,
    kind_of_file_to_write,
    parquet_file_tables,
    read_file_table,
    read_file_tables,
    whole_file,
    write_file_tables,
)

pytest.importorskip("msgspec")
FLAT = {"age": [1.5, None, 3.0], "action": [0, 1, 1], "reward": [0.0, 1.0, 1.0], "propensity": [0.5, 0.25, 0.5]}


@pytest.mark.parametrize("name", ["log.parquet", "log.pq", "log.arrow", "log.feather", "log.csv", "log.csv.gz"])
def test_tables_there_and_back(name: str, tmp_path: Path) -> None:
    table = pa.table(FLAT)
    assert write_file_tables(tmp_path / name, [table, table]) == 6
    assert read_file_table(tmp_path / name, BadRows(name)).to_pylist() == table.to_pylist() * 2
    assert kind_of_file(tmp_path / name) == kind_of_file_to_write(tmp_path / name)


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.arrow", "log.dsjson", "log.dsjson.gz", "log.json"])
def test_dsjson_by_way_of_anything(name: str, tmp_path: Path) -> None:
    made = events(30)
    original = write_events(tmp_path / "original.dsjson", made)
    write_file_tables(tmp_path / name, read_file_tables(original, BadRows("log")))
    write_file_tables(tmp_path / "again.dsjson", read_file_tables(tmp_path / name, BadRows("log")))
    assert [json.loads(line) for line in (tmp_path / "again.dsjson").read_text().splitlines()] == made


def test_kinds_by_content(tmp_path: Path) -> None:
    for name, content, kind in (
        ("a", b"x,action\n1,2\n", "csv"),
        ("b", b'\n{"_label_cost": 1}\n', "dsjson"),
        ("c", b"shared |a b\n|c d\n", "vw"),
        ("d", b"0:1:0.5 |c d\n", "vw"),
        ("e", b"|c d\n0:1:0.5 |c d\n", "vw"),
        ("f", gzip.compress(b"|c d\n"), "vw"),
        ("g", b"a|b,action\n1,2\n", "csv"),
        ("h", b"ccb shared |a\n", "vw"),
        ("i", b"2 1:0:0.5 |a\n", "vw"),
    ):
        (tmp_path / name).write_bytes(content)
        assert kind_of_file(tmp_path / name) == kind, name
    assert kind_of_file(tmp_path) == "parquet"
    with pytest.raises(InvalidInput, match="found no file"):
        kind_of_file(tmp_path / "nowhere")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(InvalidInput, match="empty: found an empty file"):
        kind_of_file(tmp_path / "empty")
    for content, said in (
        (b"\x10\x00\x00\x00\x08\x00\x00\x00" + bytes(100), "found VW's flatbuffers, which are not read.*`to_flatbuff"),
        (b"VWFB\x01\x00\x00\x00" + bytes(100), "found RL client's binary log"),
        (b"\xff\x00\xff\xff\xff\xff", "found a binary file, expected Parquet"),
    ):
        (tmp_path / "binary").write_bytes(content)
        with pytest.raises(InvalidInput, match=f"binary: {said}"):
            kind_of_file(tmp_path / "binary")
    for name in ("log.xlsx", "log", "log.parquet.gz"):
        with pytest.raises(InvalidInput, match=rf"{name}: found the file extension .*, expected one of .parquet"):
            kind_of_file_to_write(Path(name))


def test_an_output_appears_when_it_is_whole(tmp_path: Path) -> None:
    def half() -> Any:
        yield pa.table(FLAT)
        raise InvalidInput("the rest is missing")

    for name in ("log.parquet", "log.csv", "log.dsjson"):
        with pytest.raises(InvalidInput, match="the rest is missing"):
            write_file_tables(tmp_path / name, half())
    with pytest.raises(InvalidInput, match="found no rows to write"):
        write_file_tables(tmp_path / "log.parquet", [])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "kept").write_text("before")

    def fails() -> None:
        with whole_file(tmp_path / "kept") as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert (tmp_path / "kept").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_files_that_do_not_fit_together(tmp_path: Path) -> None:
    write_file_tables(tmp_path / "a.parquet", [pa.table({"x": [1]})])
    write_file_tables(tmp_path / "b.parquet", [pa.table({"x": ["word"]})])
    with pytest.raises(InvalidInput, match=f"{tmp_path.name}/b.parquet: cannot be read"):
        read_file_table(tmp_path, BadRows("log"))
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(InvalidInput, match=r"cut.parquet: expected Parquet, Arrow"):
        read_file_table(tmp_path / "cut.parquet", BadRows("log"))


def test_the_number_of_the_row_is_no_context(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(",x,action,reward,propensity\n0,1.5,0,1,0.5\n1,2.5,1,0,0.5\n")
    assert read_file_table(tmp_path / "log.csv", BadRows("log")).column_names == ["x", "action", "reward", "propensity"]


def test_a_large_file_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with parquet.ParquetWriter(tmp_path / "log.parquet", pa.schema([(f"x{k}", pa.float64()) for k in range(5)])) as out:
        for _ in range(80):
            out.write_table(pa.table({f"x{k}": rng.normal(size=20_000) for k in range(5)}))
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for table in parquet_file_tables(tmp_path / "log.parquet"):
        rows += len(table)
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == 1_600_000
    assert most < (tmp_path / "log.parquet").stat().st_size / 2


def test_event_ids_of_csv_are_texts(tmp_path: Path) -> None:
    """These two would be the same number: infinity."""
    (tmp_path / "log.csv").write_text("event_id,x,action,reward,propensity\n1e999,1,0,1,0.5\n2e999,2,1,0,0.5\n")
    assert len(o2pl.read_log(tmp_path / "log.csv")) == 2
