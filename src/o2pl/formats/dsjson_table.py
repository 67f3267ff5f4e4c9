"""Converts scanned dsjson lines to the columns of a log table."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.formats.blocks import texts_at
from o2pl.formats.dsjson_scan import ACTION, COST, DROP, INDEX, PROBABILITY, Lines
from o2pl.protocols import Array, Floats


def fast_table(pa: Any, block: bytes, found: Lines, schema: dict[str, Any]) -> tuple[Any, Array]:
    """Return a row per line, and which rows are valid; the content of the others is undefined."""
    data, n = np.frombuffer(block, np.uint8), len(found.fine)
    numbers = found.numbers
    cost, label, index = numbers[:, COST], numbers[:, ACTION], numbers[:, INDEX]
    counts = np.diff(found.ranked)
    some = counts > 0
    first = np.minimum(found.ranked[:-1], max(len(found.actions) - 1, 0))
    top_action, top_chance = np.full(n, np.nan), np.full(n, np.nan)
    top_action[some], top_chance[some] = found.actions[first[some]] - 1, found.chances[first[some]]
    action = np.where(np.isnan(index), label - 1, index)
    orphan = np.isnan(action) & ~np.isnan(cost)  # a cost without an action
    action = np.where(np.isnan(action), top_action, action)
    propensity = np.where(np.isnan(numbers[:, PROBABILITY]), top_chance, numbers[:, PROBABILITY])
    fine = found.fine & ~orphan & (np.isnan(propensity) | ((propensity > 0) & (propensity <= 1)))
    fine &= np.isnan(action) | ((action >= 0) & (action % 1 == 0) & ~((counts > 1) & (action >= counts)))
    fine &= np.isnan(label) | (label % 1 == 0)
    if some.any():
        lowest = np.minimum.reduceat(found.actions, found.ranked[:-1][some])
        fine[np.flatnonzero(some)[lowest < 1]] = False
    offsets = found.ranked.astype(np.int32)
    none = pa.array(~some)
    columns = {
        "context": texts_at(pa, data, np.where(found.fine[:, None], found.context, 0)),
        "action": _numbers(pa, np.where(fine, action, np.nan), schema["action"]),
        "reward": _numbers(pa, 0.0 - cost, schema["reward"]),
        "propensity": _numbers(pa, propensity, schema["propensity"]),
        "ranking": pa.ListArray.from_arrays(offsets, pa.array(found.actions - 1, pa.int32()), mask=none),
        "probabilities": pa.ListArray.from_arrays(offsets, pa.array(found.chances, pa.float64()), mask=none),
        "slot": pa.nulls(n, schema["slot"]),
        "event_id": texts_at(pa, data, found.texts[:, :2]),
        "time": texts_at(pa, data, found.texts[:, 2:]),
        "drop_probability": _numbers(pa, numbers[:, DROP], schema["drop_probability"]),
        "skip_learn": pa.array(found.skip == 1, pa.bool_(), mask=found.skip < 0),
        "rest": _rest(pa, found),
        "slot_rest": pa.nulls(n, schema["slot_rest"]),
    }
    return pa.table({name: columns[name] for name in schema}), fine


def _numbers(pa: Any, values: Floats, kind: Any) -> Any:
    missing = np.isnan(values)
    return pa.array(np.where(missing, 0, values), pa.float64(), mask=missing if missing.any() else None).cast(kind)


def _rest(pa: Any, found: Lines) -> Any:
    places = np.where((found.rest[:, 1] > found.rest[:, 0])[:, None], found.rest, -1)
    return texts_at(pa, found.rest_bytes, places)
