"""Rows of an Arrow table as dictionaries, in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_AT_A_TIME = 1 << 14


def rows_of(table: Any) -> Iterator[dict[str, Any]]:
    names = table.column_names
    for batch in table.to_batches(_AT_A_TIME):
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))
