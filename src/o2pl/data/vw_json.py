"""Writes the features of events in Vowpal Wabbit's text as JSON.

    shared |User age:31          ->  {"User":{"age":31},"_multi":[{"Item":{"price":3,"kind=news":1}}, ...]}
    0:-1:0.8 |Item price:3 kind=news

Names and numbers are copied as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from o2pl import _core
from o2pl.data.vw_events import is_vw_event, vw_event_json
from o2pl.protocols import Array

_MANY, _BLOCK = 2000, 4096  # number of events from which a compiled kernel pays off, and events per block


def as_json(contexts: Any) -> Iterator[bytes]:
    """Yield contexts as JSON: usual events of VW's text, those that `scan_event` reads, or JSON already."""
    if len(contexts) < _MANY:
        yield from (vw_event_json(one) if is_vw_event(one) else one for one in contexts)
        return
    for start in range(0, len(contexts), _BLOCK):
        own = list(contexts[start : start + _BLOCK])
        ends = np.cumsum([0] + [len(one) for one in own])
        found = np.array([is_vw_event(one) for one in own])
        if not found.any():
            yield from own
            continue
        data: Array = np.frombuffer(b"".join(own), np.uint8)
        written, places = _core.vw_text_json(data, np.column_stack([ends[:-1], ends[1:]]), found)
        texts = written.tobytes()
        for one, event, (begin, end) in zip(own, found.tolist(), places.tolist(), strict=True):
            yield texts[begin:end] if event else one
