"""Blocks of a file end where they should, and columns of text are what stands in it."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest

from o2pl.formats import blocks
from o2pl.formats.blocks import blocks_of, numbered_blocks, texts_in_block


@pytest.mark.parametrize("mark", [b"\n", b"\n\n"])
def test_blocks_end_with_the_mark_and_lose_nothing(mark: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"one\ntwo\n\nthree\nfour\n\nfive" * 5
    for size in range(1, 40):
        monkeypatch.setattr(blocks, "_BYTES", size)
        found = list(blocks_of(io.BytesIO(text), mark))
        assert b"".join(found) == text
        assert all(block.endswith(mark) for block in found[:-1])


def test_lines_that_come_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_LINES", 2)
    assert list(blocks_of([b"a", b"b\n", b"c"])) == [b"a\nb\n", b"c\n"]
    assert list(blocks_of([b"a", b"", b"b"], b"\n\n")) == [b"a\n\n", b"b\n"]
    assert list(blocks_of([])) == []


def test_lines_of_blocks_are_numbered() -> None:
    generator = np.random.default_rng(0)
    texts = [(10 * generator.integers(0, 2, n)).astype(np.uint8).tobytes() for n in (0, 1, 63, 64, 65, 300, 40_000)]
    texts.append(b"\n" * 40_000)
    found = list(numbered_blocks(texts))
    assert [block.lines for block in found] == [text.count(b"\n") for text in texts]
    assert [block.first for block in found] == [1 + b"".join(texts[:k]).count(b"\n") for k in range(len(texts))]


def test_columns_of_text() -> None:
    data = np.frombuffer("Rom, é, Oslo".encode(), np.uint8)
    apart = texts_in_block(pa, data, np.array([[5, 7], [-1, -1], [0, 3], [3, 3]]))
    assert apart.to_pylist() == ["é", None, "Rom", ""]
    assert texts_in_block(pa, data, np.array([[0, 3], [3, 5], [5, 7]])).to_pylist() == ["Rom", ", ", "é"]
    assert texts_in_block(pa, data, np.zeros((0, 2), np.int64)).to_pylist() == []
    with pytest.raises(pa.ArrowInvalid):
        texts_in_block(pa, data, np.array([[5, 6]]))
