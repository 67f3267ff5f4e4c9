"""Rows of a table as dictionaries."""

from __future__ import annotations

import pyarrow as pa

from o2pl.formats.rows import rows_of


def test_all_rows_of_all_chunks() -> None:
    table = pa.concat_tables([pa.table({"a": [1], "b": [["x"]]}), pa.table({"a": [2], "b": [["y"]]})])
    assert list(rows_of(table)) == [{"a": 1, "b": ["x"]}, {"a": 2, "b": ["y"]}]
