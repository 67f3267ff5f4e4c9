"""Batch writes of servers: decisions, rewards and activations in one transaction, with one answer per entry."""

from __future__ import annotations

import json
import math
import random
import time
import uuid
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Table

from o2pl.errors import InvalidInput
from o2pl.serving.schema import activations, decisions, rewards

LONGEST_ID = 256  # characters of an event id, slot id or idempotency key


class Answer(Enum):
    """The result of writing an entry."""

    STORED = "stored"
    DUPLICATE = "duplicate"  # it already exists; nothing was written
    UNKNOWN = "unknown event"  # no decision has this event id (and slot); nothing was written


class DecisionRow(NamedTuple):
    """A row of `decisions`, without the id column."""

    application_id: int
    event_id: str
    slot: str
    decided_at: float
    context: bytes
    actions: bytes | None
    action: int | None
    value: float | None
    propensity: float
    probabilities: bytes | None
    uniform: float
    exploration: float
    model_version: int
    deferred: bool = False
    baseline: int | None = None
    preferred: int | None = None
    experiment: str | None = None
    unit: str | None = None
    control: bool | None = None


class RewardRow(NamedTuple):
    """A row of `rewards`, without the id column."""

    application_id: int
    event_id: str
    slot: str
    value: float
    received_at: float
    idempotency_key: str | None = None
    metrics: str | None = None


class ActivationRow(NamedTuple):
    """A row of `activations`, without the id column."""

    application_id: int
    event_id: str
    activated_at: float


# A tuple of decisions is one event with several slots: all are stored, or none.
Entry = DecisionRow | RewardRow | ActivationRow | tuple[DecisionRow, ...]


def new_event_id() -> str:
    """Return a UUID (version 7): the time, then 74 random bits. Close times share index pages."""
    milliseconds, chance = time.time_ns() // 1_000_000, random.getrandbits(74)  # as unique as the system's, and faster
    number = (milliseconds << 80) | (7 << 76) | ((chance >> 62) << 64) | (2 << 62) | (chance & ((1 << 62) - 1))
    return str(uuid.UUID(int=number))


def check_entry(entry: Entry) -> None:
    """Reject values that a database would refuse (with the whole batch) or change."""
    if isinstance(entry, RewardRow):
        _check_id("eventId", entry.event_id)
        _check_id("slot", entry.slot, empty=True)
        if entry.idempotency_key is not None:
            _check_id("idempotency key", entry.idempotency_key)
        if not math.isfinite(entry.value):
            raise InvalidInput(f"value: found {entry.value}, expected a finite reward")
    elif isinstance(entry, ActivationRow):
        _check_id("eventId", entry.event_id)
    else:
        for row in _decisions_of(entry):
            _check_id("eventId", row.event_id)
            _check_id("slot", row.slot, empty=True)
            if not (math.isfinite(row.propensity) and row.propensity > 0 and math.isfinite(row.uniform)):
                raise InvalidInput(f"propensity: found {row.propensity}, expected a finite number above 0")


def _check_id(name: str, text: str, empty: bool = False) -> None:
    if not (0 < len(text) <= LONGEST_ID or (empty and not text)):
        raise InvalidInput(f"{name}: found {len(text)} characters, expected 1 to {LONGEST_ID}")
    if not text.isprintable():  # no NUL, which PostgreSQL rejects, and no lone surrogates
        raise InvalidInput(f"{name}: found {text!r}, expected printable characters")


def _decisions_of(entry: Any) -> tuple[DecisionRow, ...]:
    return (entry,) if isinstance(entry, DecisionRow) else entry


def add_entries(raw: Any, dialect: str, entries: Sequence[Entry]) -> list[Answer]:
    """Write the entries. The caller holds the writers' lock, so lookups stay valid until the commit.

    raw: a driver connection, see `database.driving`.
    """
    known = _known_slots(raw, dialect, entries)  # known events of the entries: {(application, event): slots}
    keyed = _known_keys(raw, dialect, entries)
    active = _known_activations(raw, dialect, entries)
    new: dict[Table, list[Any]] = {decisions: [], rewards: [], activations: []}
    answers = [Answer.STORED] * len(entries)
    for place, entry in enumerate(entries):  # decisions first: their rewards may be in the same batch
        if not isinstance(entry, RewardRow | ActivationRow):
            rows = _decisions_of(entry)
            event = rows[0][:2]
            if event in known:
                answers[place] = Answer.DUPLICATE
            else:
                known[event] = {row.slot for row in rows}
                new[decisions] += rows
    for place, entry in enumerate(entries):
        if isinstance(entry, RewardRow):
            key = (*entry[:3], entry.idempotency_key)
            if entry.slot not in known.get(entry[:2], ()):
                answers[place] = Answer.UNKNOWN
            elif key in keyed:
                answers[place] = Answer.DUPLICATE
            else:
                new[rewards].append(entry)
                if entry.idempotency_key is not None:
                    keyed.add(key)
        elif isinstance(entry, ActivationRow):
            if entry[:2] not in known:
                answers[place] = Answer.UNKNOWN
            elif entry[:2] in active:
                answers[place] = Answer.DUPLICATE
            else:
                active.add(entry[:2])
                new[activations].append(entry)
    for table, added in new.items():
        _insert(raw, dialect, table, added)
    return answers


_SHARED_END = b'"_multi":['  # in the text of a set of actions


def same_request(asked: Sequence[DecisionRow], known: Sequence[Any]) -> bool:
    """Return whether stored rows of an event were made for the same request, whatever was decided.

    What the later slots of an event may play depends on what was drawn before: of these, only what all actions share
    is compared.
    """
    if [row.slot for row in asked] != [row.slot for row in known]:
        return False
    for place, (row, other) in enumerate(zip(asked, known, strict=True)):
        own, theirs = row.context, bytes(other.context)
        if place:
            own, theirs = own.partition(_SHARED_END)[0], theirs.partition(_SHARED_END)[0]
        elif (row.actions, row.baseline) != (other.actions and bytes(other.actions), other.baseline):
            return False
        if own != theirs or row.deferred != other.deferred:
            return False
    return True


# -- lookups: one statement per application, for any number of events


def _known_slots(raw: Any, dialect: str, entries: Sequence[Entry]) -> dict[Any, set[str]]:
    known: dict[Any, set[str]] = {}
    for application, event, slot in _found(raw, dialect, "decisions", "event_id, slot", entries):
        known.setdefault((application, event), set()).add(slot)
    return known


def _known_keys(raw: Any, dialect: str, entries: Sequence[Entry]) -> set[Any]:
    keyed = [entry for entry in entries if isinstance(entry, RewardRow) and entry.idempotency_key is not None]
    return set(_found(raw, dialect, "rewards", "event_id, slot, idempotency_key", keyed))


def _known_activations(raw: Any, dialect: str, entries: Sequence[Entry]) -> set[Any]:
    asked = [entry for entry in entries if isinstance(entry, ActivationRow)]
    return set(_found(raw, dialect, "activations", "event_id", asked))


def _found(raw: Any, dialect: str, table: str, names: str, entries: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    """Yield (application, *names) of the table's rows for the entries' events."""
    events: dict[int, list[str]] = {}
    for entry in entries:
        row = entry[0] if isinstance(entry[0], DecisionRow) else entry
        events.setdefault(row.application_id, []).append(row.event_id)
    for application, ids in events.items():
        if dialect == "sqlite":
            listed: Any = json.dumps(ids)
            where = "application_id = ? AND event_id IN (SELECT value FROM json_each(?))"
        else:
            listed, where = ids, "application_id = %s AND event_id = ANY(%s)"
        found = raw.execute(f"SELECT {names} FROM {table} WHERE {where}", (application, listed)).fetchall()
        yield from ((application, *row) for row in found)


# -- inserts: one statement for up to 64 rows, since every statement releases and takes the GIL


def _insert(raw: Any, dialect: str, table: Table, rows: list[tuple[Any, ...]]) -> None:
    mark = "?" if dialect == "sqlite" else "%s"
    at, size = 0, 64
    while at < len(rows):
        while size > len(rows) - at:
            size //= 2  # few different statement texts: each is parsed once
        values = tuple(value for row in rows[at : at + size] for value in row)
        raw.execute(_text(table, size, mark), values)
        at += size


@cache
def _text(table: Table, size: int, mark: str) -> str:
    names = [column.name for column in table.columns][1:]  # the database assigns the id
    row = f"({', '.join([mark] * len(names))})"
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join([row] * size)}"
