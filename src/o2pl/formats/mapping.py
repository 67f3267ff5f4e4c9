"""JSON lines of a user's own shape, by a mapping from roles to paths.

    context=$.user, items=$.candidates[*], chosen=$.shown, reward=$.click, propensity=$.p

A path starts with `$`, the whole object; `.name`, `["name"]` and `[0]` go into it, and `[*]` takes every element of a
list. Errors name the line and the path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from o2pl.data.records import record_parser
from o2pl.errors import InvalidInput, nearest
from o2pl.extras import extra
from o2pl.formats.bad_rows import BadRows

ROLES = ("context", "items", "ids", "chosen", "reward", "propensity", "id", "time")
_STEP = re.compile(r"""\.([\w-]+)|\[(\d+|\*)\]|\["([^"]+)"\]""")
_EACH = "*"
_EXAMPLE = "such as context=$.user, items=$.candidates[*], chosen=$.shown, reward=$.click, propensity=$.p"
_NOTHING = object()


class _Wrong(Exception):
    pass


@dataclass(frozen=True)
class Path:
    """A path into an object: names, places, and `*` for every element of a list."""

    text: str
    steps: tuple[str | int, ...]

    @property
    def name(self) -> str:
        """The last name of the path."""
        return next((str(step) for step in reversed(self.steps) if isinstance(step, str) and step != _EACH), "context")

    def of(self, event: object) -> Any:
        """Return what is there; `_NOTHING` if nothing is."""
        return _follow_mapping(event, self.steps)

    def needed(self, event: object, expected: str) -> Any:
        found = self.of(event)
        if found is _NOTHING or found is None:
            there = f" (fields: {', '.join(list(event)[:8])})" if isinstance(event, dict) and found is _NOTHING else ""
            raise _Wrong(f"{self.text}: found nothing there{there}, expected {expected}")
        return found


def _follow_mapping(value: Any, steps: tuple[str | int, ...]) -> Any:
    for at, step in enumerate(steps):
        if step == _EACH:
            if not isinstance(value, list):
                return _NOTHING
            return [_follow_mapping(each, steps[at + 1 :]) for each in value]
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return _NOTHING
        elif not isinstance(value, dict) or step not in value:
            return _NOTHING
        value = value[step]
    return value


@dataclass(frozen=True)
class Mapping:
    """Where each role is found."""

    contexts: tuple[Path, ...]
    paths: dict[str, Path]


def mapping_of(text: str) -> Mapping:
    """Parse `context=$.user, reward=$.click`. `context` may be given several times."""
    contexts: list[Path] = []
    paths: dict[str, Path] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        role, equals, path = (part.strip() for part in pair.partition("="))
        if not (role and equals and path):
            raise InvalidInput(f"map: found {pair!r}, expected role=path, {_EXAMPLE}")
        if role not in ROLES:
            raise InvalidInput(f"map: found the role {role!r}, {nearest(role, ROLES)}")
        if role in paths:
            raise InvalidInput(f"map: found {role!r} twice, expected it once; only context may be given several times")
        if role == "context":
            contexts.append(_mapping_path(path))
        else:
            paths[role] = _mapping_path(path)
    for role in ("chosen", "reward"):
        if role not in paths:
            raise InvalidInput(f"map: found no {role!r} in {text!r}, expected it, {_EXAMPLE}")
    if "ids" in paths and "items" not in paths:
        raise InvalidInput("map: found ids without items, expected both, such as items=$.offers[*], ids=$.offers[*].id")
    return Mapping(tuple(contexts), paths)


def _mapping_path(text: str) -> Path:
    steps: list[str | int] = []
    at = 1
    if text.startswith("$"):
        while at < len(text) and (found := _STEP.match(text, at)):
            name, place, quoted = found.groups()
            steps.append(int(place) if place is not None and place != _EACH else place or name or quoted)
            at = found.end()
    if not text.startswith("$") or at < len(text):
        raise InvalidInput(f'map: found the path {text!r}, expected one such as $.user, $.items[*].id or $["a b"][0]')
    return Path(text, tuple(steps))


def read_mapped(lines: IO[bytes] | Iterable[bytes], mapping: Mapping, bad: BadRows) -> Iterator[Any]:
    """Yield one table of all lines."""
    with extra("logs", "reading JSON lines"):
        import pyarrow as pa
    decode = record_parser()
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = decode(line)
        except ValueError as error:  # of either parser
            bad.line(number, f"found no complete JSON object ({error})")
            continue
        try:
            row = _mapped_row(event, mapping)
            if rows and isinstance(row["action"], str) != isinstance(was := rows[0]["action"], str):
                path, found = mapping.paths["chosen"].text, row["action"]
                raise _Wrong(
                    f"{path}: found {_shown_in_mapping(found)}, and {_shown_in_mapping(was)} before, expected"
                    " words or numbers"
                )
            rows.append(row)
        except _Wrong as error:
            bad.line(number, str(error))
    if rows:
        yield pa.table({name: [row[name] for row in rows] for name in rows[0]})


def _mapped_row(event: object, mapping: Mapping) -> dict[str, Any]:
    if not isinstance(event, dict):
        raise _Wrong(f"found {_shown_in_mapping(event)}, expected an object")
    paths = mapping.paths
    context = _mapped_context(event, mapping.contexts)
    row: dict[str, Any] = {}
    if "items" in paths:
        items = _mapped_items(event, paths["items"])
        row["action"] = _mapped_place(event, paths, items)
        context["_multi"] = [one if isinstance(one, dict) else {"item": one} for one in items]
    else:
        row["action"] = _mapped_action(event, paths["chosen"])
    row["reward"] = _mapped_number(event, paths["reward"])
    if "propensity" in paths:
        row["propensity"] = _mapped_number(event, paths["propensity"])
    for role, column in (("id", "event_id"), ("time", "time")):
        if role in paths:
            row[column] = str(paths[role].needed(event, "a text or a number"))
    return {"context": json.dumps(context, ensure_ascii=False), **row}


def _mapped_context(event: object, paths: tuple[Path, ...]) -> dict[str, Any]:
    """Return the object at the only path; with several, what is at each by the path's last name."""
    found: dict[str, Any] = {}
    for path in paths:
        value = path.needed(event, "features")
        if len(paths) == 1 and isinstance(value, dict):
            return dict(value)
        if path.name in found:
            raise _Wrong(f"{path.text}: found a second part of the context called {path.name!r}, expected other names")
        found[path.name] = value
    return found


def _mapped_items(event: object, path: Path) -> list[Any]:
    found = path.needed(event, "a list of items")
    if not isinstance(found, list) or not found:
        raise _Wrong(f"{path.text}: found {_shown_in_mapping(found)}, expected a list of at least one item")
    for place, item in enumerate(found):
        if item is _NOTHING or not isinstance(item, dict | str | int | float):
            raise _Wrong(
                f"{path.text}: found {_shown_in_mapping(item)} for item {place}, expected an object, a word or a number"
            )
    return found


def _mapped_place(event: object, paths: dict[str, Path], items: list[Any]) -> int:
    """Return which item was taken: its place from 0, its id, or the item itself if that is a word."""
    path = paths["chosen"]
    chosen = path.needed(event, "the place of an item, or its id")
    names: list[Any] = items
    if "ids" in paths:
        names = paths["ids"].needed(event, "a list of ids")
        if not isinstance(names, list) or len(names) != len(items):
            raise _Wrong(
                f"{paths['ids'].text}: found {_shown_in_mapping(names)}, expected an id for each of {len(items)} items"
            )
    elif isinstance(chosen, int) and not isinstance(chosen, bool) and 0 <= chosen < len(items):
        return chosen
    if ("ids" in paths or isinstance(chosen, str)) and names.count(chosen) == 1:
        return names.index(chosen)
    if "ids" in paths or isinstance(chosen, str):
        times = "none of the items has" if chosen not in names else "several items have"
        raise _Wrong(
            f"{path.text}: found {_shown_in_mapping(chosen)}, which {times}, expected the id of one item"
            " (ids=$.…[*].id)"
        )
    raise _Wrong(
        f"{path.text}: found {_shown_in_mapping(chosen)}, expected the place of an item, from 0 to"
        f" {len(items) - 1}, or with"
        " ids=$.…[*].id its id"
    )


def _mapped_action(event: object, path: Path) -> int | float | str:
    found = path.needed(event, "an action: a number or a word")
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        raise _Wrong(f"{path.text}: found {_shown_in_mapping(found)}, expected an action: a number or a word")
    return found


def _mapped_number(event: object, path: Path) -> float:
    found = path.needed(event, "a number")
    if not isinstance(found, int | float):
        raise _Wrong(f"{path.text}: found {_shown_in_mapping(found)}, expected a number")
    return float(found)


def _shown_in_mapping(value: object) -> str:
    if value is _NOTHING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=lambda _: "nothing")
    return text if len(text) <= 60 else f"{text[:57]}..."
