"""JSON columns of a log table: contexts as text, and lists as text for formats without lists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.extras import extra

# Columns that are not context. All but the first three are optional.
ROLES = (
    "action", "reward", "propensity", "logger", "event_id", "time", "ranking", "probabilities", "drop_probability",
    "skip_learn", "rest", "slot_rest",
)  # fmt: skip


def json_context_column(tables: Iterable[object], *, numbered: bool = False) -> Iterator[Any]:
    """Yield tables whose context is one JSON column, as VW's formats need it.

    Feature columns become members of an object. If actions are integers or strings, each becomes an item of `_multi`
    with its name. All K actions must be known from the first table, or come in a column `actions`. numbered: integers
    beside a JSON context without `_multi` stay what they are, as VW's text has them.
    """
    names: list[str] | None = None
    for table in tables:
        import pyarrow as pa
        from pyarrow import types

        table = with_lists_of_json_columns(table)
        if "context" in table.column_names:
            if "actions" in table.column_names:
                yield _json_columns_with_multi(table)
            elif _has_fixed_actions_for_json_columns(table) and not (
                numbered and types.is_integer(table.schema.field("action").type)
            ):
                names = _action_names_of_json_columns(table, names)
                yield _json_columns_with_names(table, names)
            else:
                yield table
            continue
        kind, sets = table.schema.field("action").type, "actions" in table.column_names
        continuous = types.is_floating(kind) and not _whole_numbers_in_json_column(table.column("action"))
        if not (sets or continuous):
            names = _action_names_of_json_columns(table, names)
        shared = [name for name in table.column_names if name not in (*ROLES, "actions")]
        rows = table.select(shared).to_pylist()
        for row in rows:
            for name, value in list(row.items()):
                if value is None:
                    del row[name]
                elif isinstance(value, datetime | date):
                    row[name] = value.isoformat()
        if sets:
            for row, actions in zip(rows, table.column("actions").to_pylist(), strict=True):
                row["_multi"] = json.loads(actions) if isinstance(actions, str) else actions
        elif names is not None:
            for row in rows:
                row["_multi"] = [{"action": {"name": name}} for name in names]
            numbers = {name: place for place, name in enumerate(names)}
            actions = [numbers[_action_name_in_json_column(action)] for action in table.column("action").to_pylist()]
            table = table.set_column(table.column_names.index("action"), "action", pa.array(actions, pa.int64()))
        context = pa.array([json.dumps(row, ensure_ascii=False) for row in rows], pa.string())
        yield table.drop_columns([*shared, *(["actions"] if sets else [])]).append_column("context", context)


def _has_fixed_actions_for_json_columns(table: Any) -> bool:
    """Return whether actions are a fixed number of names or numbers, beside contexts without `_multi`."""
    from pyarrow import types

    first = next((text for text in table.column("context").to_pylist() if text is not None), "{}")
    return not types.is_floating(table.schema.field("action").type) and "_multi" not in json.loads(first)


def _json_columns_with_names(table: Any, names: list[str]) -> Any:
    """Return a table with an item of `_multi` per action, its name."""
    import pyarrow as pa

    multi = json.dumps([{"action": {"name": name}} for name in names], ensure_ascii=False)
    texts = []
    for text in table.column("context").to_pylist():
        members = text.strip()[1:-1].strip()
        texts.append("{" + members + ("," if members else "") + f'"_multi":{multi}' + "}")
    numbers = {name: place for place, name in enumerate(names)}
    actions = [
        None if one is None else numbers[_action_name_in_json_column(one)] for one in table.column("action").to_pylist()
    ]
    for name, values in (("context", pa.array(texts, pa.string())), ("action", pa.array(actions, pa.int64()))):
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def _json_columns_with_multi(table: Any) -> Any:
    """Return a table whose column `actions` is `_multi` of its column `context`."""
    import pyarrow as pa

    texts = []
    for text, actions in zip(table.column("context").to_pylist(), table.column("actions").to_pylist(), strict=True):
        event = {**json.loads(text), "_multi": json.loads(actions) if isinstance(actions, str) else actions}
        texts.append(json.dumps(event, ensure_ascii=False))
    at = table.column_names.index("context")
    return table.set_column(at, "context", pa.array(texts, pa.string())).drop_columns(["actions"])


def with_lists_of_json_columns(table: Any) -> Any:
    """Return lists and times in the form of VW's formats, from CSV text and Arrow timestamps."""
    import pyarrow as pa
    from pyarrow import types

    for name, kind in (("ranking", pa.int32()), ("probabilities", pa.float64())):
        if name in table.column_names and types.is_string(table.schema.field(name).type):
            lists = [None if text is None else json.loads(text) for text in table.column(name).to_pylist()]
            table = table.set_column(table.column_names.index(name), name, pa.array(lists, pa.list_(kind)))
    if "time" in table.column_names and not types.is_string(table.schema.field("time").type):
        times = [
            None if moment is None else _moment_in_json_column(moment) for moment in table.column("time").to_pylist()
        ]
        table = table.set_column(table.column_names.index("time"), "time", pa.array(times, pa.string()))
    return table


def _moment_in_json_column(moment: object) -> str:
    return str(moment.isoformat() if isinstance(moment, datetime | date) else moment)


def _whole_numbers_in_json_column(column: Any) -> bool:
    return all(value is not None and value % 1 == 0 for value in column.to_pylist())


def _action_name_in_json_column(action: Any) -> str:
    return action if isinstance(action, str) else str(int(action))


def _action_names_of_json_columns(table: Any, known: list[str] | None) -> list[str]:
    found = {_action_name_in_json_column(action) for action in table.column("action").to_pylist() if action is not None}
    if known is None:
        numbered = all(name.isdecimal() for name in found)
        return [str(k) for k in range(max(map(int, found)) + 1)] if numbered else sorted(found)
    if not found <= set(known):
        new = sorted(found - set(known))[0]
        raise InvalidInput(
            f"action: found {new!r}, expected one of the actions of the first rows: {', '.join(known[:12])}"
        )
    return known


def renamed_columns_of(text: str) -> dict[str, str]:
    """Parse `action=item_id,reward=click` to new names by old names."""
    found = {}
    for pair in text.split(",") if text else []:
        name, equals, old = (part.strip() for part in pair.partition("="))
        if not (name and equals and old):
            raise InvalidInput(f"columns: found {pair!r}, expected name=column, such as action=item_id,reward=click")
        found[old] = name
    return found


def with_renamed_columns(tables: Iterable[Any], names: dict[str, str], left_out: list[str], file: str) -> Iterator[Any]:
    """Yield tables with renamed and dropped columns. file: for messages."""
    for table in tables:
        for name in (*names, *left_out):
            if name not in table.column_names:
                near = get_close_matches(name, table.column_names, 1)
                meant = f" (did you mean {near[0]!r}?)" if near else ""
                known = ", ".join(table.column_names[:12])
                raise InvalidInput(f"{file}: found columns {known}, expected a column {name!r}{meant}")
        kept = table.drop_columns(left_out) if left_out else table
        new = [names.get(name, name) for name in kept.column_names]
        twice = [name for name in new if new.count(name) > 1]
        if twice:
            raise InvalidInput(f"{file}: found {twice[0]!r} twice after renaming, expected each name once")
        yield kept.rename_columns(new)


def lists_as_json_columns(table: Any) -> Any:
    """Convert lists and structures to JSON text, for CSV."""
    import pyarrow as pa
    from pyarrow import types

    for place, field in enumerate(table.schema):
        if types.is_nested(field.type):
            texts = [None if value is None else json.dumps(value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table


def table_of_number_columns(log: Interactions) -> Any:
    """Return a log table with numeric columns `x0`, `x1`, …, for example of a saved learner."""
    with extra("logs", "writing logs"):
        import pyarrow as pa
    if log.form != "dense":
        kind = "hashed features" if log.form == "sparse" else "action sets"
        raise InvalidInput(f"log: found {kind} of a saved learner, expected numeric rows; only these can be converted")
    columns = {f"x{j}": log.contexts[:, j] for j in range(log.contexts.shape[1])}
    known: dict[str, Any] = {} if log.ids is None else {"event_id": log.event_ids}
    if log.row_weights is not None:  # only ratios matter: the smallest weight is that of a row without drops
        known["drop_probability"] = 1 - log.row_weights.min() / log.row_weights
    decided = {"action": log.named_actions, "reward": log.rewards, "propensity": log.propensities}
    return pa.table({**decided, **known, **columns})
