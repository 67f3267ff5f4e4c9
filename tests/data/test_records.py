"""Contexts that are kept as they were handed in."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl.data.records import Records, Texts, are_records, record_parser, records_by_name
from o2pl.encode.dictionaries import DictionaryReader

ROWS = [{"a": 1.0}, {"a": "x"}, {"b": [1, 2]}]
SETS = [[{"a": 1}], ({"u": 1}, [{"a": 1}, {"a": 2}]), {"u": 1, "_multi": [{}, {}, {}]}]


def test_rows_and_parts() -> None:
    records = Records.of(ROWS)
    assert (len(records), records.sizes, records[1]) == (3, None, {"a": "x"})
    assert list(records[np.array([2, 0])]) == [ROWS[2], ROWS[0]]
    assert list(records[1:]) == ROWS[1:]
    assert are_records(records)
    assert are_records(ROWS)
    assert not are_records([[1.0]])
    assert not are_records([])


def test_sets_know_their_sizes() -> None:
    records = Records.of(SETS)
    assert records.sizes is not None
    assert records.sizes.tolist() == [1, 2, 3]
    assert records[1:].sizes.tolist() == [2, 3]
    with pytest.raises(InvalidInput, match="action set 1: found dict"):
        Records.of([SETS[0], {"a": 1}])


def test_texts_are_parsed_when_they_are_read() -> None:
    texts = Records(np.array([b'{"a": 1.0}', b'{"a": "x"}', b'{"b": [1, 2]}'], object))
    assert list(texts) == ROWS
    assert texts[1] == ROWS[1]
    reader = DictionaryReader(12)
    np.testing.assert_array_equal(reader.rows(texts).indices, reader.rows(ROWS).indices)
    assert record_parser()(b"[1]") == [1]


def test_texts_of_a_column_are_made_when_they_are_read() -> None:
    pa = pytest.importorskip("pyarrow")
    given = [f'{{"row":{row}}}'.encode() for row in range(7)]
    texts = Texts(pa.chunked_array([pa.array(given[:3], pa.binary()), pa.array(given[3:], pa.binary())]))
    assert (len(texts), list(texts), texts[4], texts[-1]) == (7, given, given[4], given[6])
    for rows in (slice(2, 6), np.array([5, 0, 0]), np.arange(7)[::-1], np.array(given) == given[3], slice(0, 0)):
        own = np.array(given)[rows].tolist()
        assert list(texts[rows]) == own
        assert list(texts[rows][::-1]) == own[::-1]
    records = Records(texts[1:5])
    assert records[0] == {"row": 1}
    assert list(records[np.array([2, 0])]) == [{"row": 3}, {"row": 1}]


def test_rows_of_action_sets_are_pairs_that_are_read_by_name() -> None:
    (row,) = records_by_name(Records.of([{"age": 3, "_multi": [{"a": 1}, {"a": 2}]}]))
    user, items = row
    assert (user, items) == (row[0], row[1]) == ({"age": 3}, [{"a": 1}, {"a": 2}])
    assert row["age"] == 3
    assert row["_multi"] == items
    contexts = Records.of([{"age": 3}])
    assert records_by_name(contexts) is contexts
