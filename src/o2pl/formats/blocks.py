"""Line-based files in blocks of a few megabytes, and Arrow columns of text slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl.protocols import Array, Ints

_BYTES = 1 << 22  # block size
_LINES = 1 << 14  # lines per block, if the input is an iterable of lines


def blocks_of(lines: IO[bytes] | Iterable[bytes], mark: bytes = b"\n") -> Iterator[bytes]:
    """Yield blocks that end with `mark`, except the last."""
    read: Any = getattr(lines, "read", None)
    left = b""
    if read is None:
        each = iter(lines)
        while some := list(islice(each, _LINES)):
            whole = left + b"".join(line if line.endswith(b"\n") else line + b"\n" for line in some)
            cut = whole.rfind(mark) + len(mark) if mark in whole else 0
            left = whole[cut:]
            if cut:
                yield whole[:cut]
    else:
        while some_bytes := read(_BYTES):
            cut = some_bytes.rfind(mark)
            if cut < 0:
                joined = left + some_bytes  # the mark may span both
                cut = joined.rfind(mark)
                if cut < 0:
                    left = joined
                    continue
                yield joined[: cut + len(mark)]
                left = joined[cut + len(mark) :]
                continue
            yield b"".join((left, memoryview(some_bytes)[: cut + len(mark)]))  # one copy
            left = some_bytes[cut + len(mark) :]
    if left:
        yield left


class Block(NamedTuple):
    """A block of a file."""

    data: bytes
    first: int  # number of its first line, from 1
    lines: int  # number of newlines


def numbered_blocks(blocks: Iterable[bytes]) -> Iterator[Block]:
    """Yield the blocks with their line numbers."""
    first = 1
    for data in blocks:
        yield Block(data, first, lines := _core.newlines(data))
        first += lines


def texts_in_block(pa: Any, data: Array, places: Ints) -> Any:
    """Return an Arrow column of the text slices `places`, [n, 2]; null if the start is negative."""
    known = places[:, 0] >= 0
    if len(places) and known.all() and (places[1:, 0] == places[:-1, 1]).all():  # consecutive: no copy
        first = places[0, 0]
        offsets = np.append(places[:, 0], places[-1, 1]).astype(np.int64)
        offsets, out = (offsets - first).astype(np.int32), data[first : places[-1, 1]]
    else:
        offsets = np.zeros(len(places) + 1, np.int32)
        np.cumsum(np.maximum(places[:, 1] - places[:, 0], 0), out=offsets[1:])
        out = np.empty(int(offsets[-1]), np.uint8)
        _core.gather_texts(data, places, offsets, out)
    mask = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    missing = int(len(known) - known.sum())
    column = pa.Array.from_buffers(
        pa.binary(), len(places), [mask, pa.py_buffer(offsets), pa.py_buffer(out)], null_count=missing
    )
    return column.cast(pa.string())  # validates UTF-8
