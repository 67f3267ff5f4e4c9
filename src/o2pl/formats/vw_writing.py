"""Writes the columns of a log table as Vowpal Wabbit's text, in the form that its decisions need: see `vw_forms`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.formats.rows import rows_of

Pairs = list[tuple[str, Any]]  # a JSON object; keys may repeat
_MEANT = " \t\n:|"  # characters with a meaning in text


def write_vw_text(tables: Iterable[object]) -> Iterator[bytes]:
    """Yield the lines of decisions; events of several lines have an empty line after each."""
    slots: list[dict[str, Any]] = []  # of one event
    for table in tables:
        for row in rows_of(table):
            if row.get("drop_probability"):
                raise InvalidInput("VW's text: found drop_probability, which it does not support; write dsjson instead")
            if slots and row.get("slot") in (None, 0):
                yield _write_vw_slots(slots).encode()
                slots = []
            if row.get("slot") is None:
                yield _write_vw_event(row).encode()
            else:
                slots.append(row)
    if slots:
        yield _write_vw_slots(slots).encode()


def _write_vw_event(row: dict[str, Any]) -> str:
    context: Pairs = json.loads(row["context"], object_pairs_hook=_Object)
    actions = _write_vw_member(context, "_multi")
    if actions is None:
        return _write_vw_line(row, context)
    shared = write_vw_features(context)
    lines = [f"shared {_write_vw_tag(row)}{shared}"] if shared else []
    for place, action in enumerate(actions):
        label = f"{_write_vw_label(row, 0)} " if place == row["action"] and _write_vw_as_learned(row) else ""
        lines.append(f"{label}{write_vw_features(action) or '|'}")
    return "\n".join(lines) + "\n\n"


def _write_vw_line(row: dict[str, Any], context: Pairs) -> str:
    """Return a decision among numbered actions, or a real-valued one."""
    real = isinstance(row["action"], float)
    evaluated = _write_vw_rest(row).get("_eval")
    words = ["ca"] if real else [] if evaluated is None else [str(evaluated)]
    if _write_vw_as_learned(row):
        words.append(_write_vw_label(row, row["action"] if real else row["action"] + 1))
    return " ".join([*words, f"{_write_vw_tag(row)}{write_vw_features(context) or '|'}"]) + "\n"


def _write_vw_slots(rows: list[dict[str, Any]]) -> str:
    context: Pairs = json.loads(rows[0]["context"], object_pairs_hook=_Object)
    lines = [f"ccb shared {_write_vw_tag(rows[0])}{write_vw_features(context) or '|'}"]
    lines += [f"ccb action {write_vw_features(action) or '|'}" for action in _write_vw_member(context, "_multi")]
    decided = {row["slot"]: row for row in rows}
    for place, slot in enumerate(_write_vw_member(context, "_slots")):
        row, words = decided.get(place), ["ccb slot"]
        if row is not None and _write_vw_as_learned(row):
            others = zip(row["ranking"][1:], row["probabilities"][1:], strict=False)
            words.append(",".join([_write_vw_label(row, row["action"]), *(f"{k}:{p!r}" for k, p in others)]))
        allowed = _write_vw_member(slot, "_inc")
        if allowed is not None:
            words.append(",".join(map(str, allowed)))
        lines.append(" ".join([*words, write_vw_features(slot) or "|"]))
    return "\n".join(lines) + "\n\n"


def _write_vw_as_learned(row: dict[str, Any]) -> bool:
    return row["reward"] is not None and not row.get("skip_learn")


def _write_vw_label(row: dict[str, Any], action: float) -> str:
    return f"{action!r}:{0.0 - row['reward']!r}:{row['propensity']!r}"


def _write_vw_tag(row: dict[str, Any]) -> str:
    tag = row.get("event_id") or _write_vw_rest(row).get("_tag")
    return f"'{tag}" if tag and not set(tag) & set(" \t|") else ""


def _write_vw_rest(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["rest"]) if row.get("rest") else {}
    return found


def _write_vw_member(pairs: Pairs, name: str) -> Any:
    return next((value for key, value in pairs if key == name), None)


class _Object(list[tuple[str, Any]]):
    """A JSON object; other lists are arrays."""


def write_vw_features(pairs: Pairs, namespace: str = "") -> str:
    """Convert JSON to text by VW's rules: every object is a namespace; scalars are features of the enclosing one."""
    own: list[str] = []
    inner: list[str] = []
    for key, value in pairs:
        if key == "_text":
            own += str(value).split()
        elif key.startswith("_"):
            continue
        elif isinstance(value, _Object):
            inner.append(write_vw_features(value, key))
        elif isinstance(value, list):
            numbers = [f"{k}:{one!r}" for k, one in enumerate(value) if _write_vw_as_number(one)]
            if numbers:
                inner.append(f"|{_write_vw_name(key)} {' '.join(numbers)}")
            inner += [write_vw_features(one, key) for one in value if isinstance(one, _Object)]
        elif isinstance(value, str):
            own.append(_write_vw_name(key) + _write_vw_escaped(value))
        elif value is True:
            own.append(_write_vw_name(key))
        elif _write_vw_as_number(value):
            own.append(f"{_write_vw_name(key)}:{value!r}")
    first = f"|{_write_vw_name(namespace)} {' '.join(own)}" if own else ""
    return " ".join(part for part in (first, *inner) if part)


def _write_vw_as_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _write_vw_name(key: str) -> str:
    """Return a key, which VW takes as it is in JSON; blanks, colons and bars end a name in text."""
    if any(character in _MEANT for character in key):
        raise InvalidInput(
            f"VW's text: found the name {key!r}, with a blank, a colon or a bar, which text cannot hold; write dsjson"
            " instead"
        )
    return key


def _write_vw_escaped(word: str) -> str:
    """Return a string value as VW reads it in JSON."""
    for character in _MEANT:
        word = word.replace(character, "_")
    return word
