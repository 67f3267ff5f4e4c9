"""Reads of the trainer and the dashboard: the rows after the last one read, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table, and_, exists, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from o2pl.serving.schema import activations, decisions, meta, minutes, outcomes, rewards

Rows = Sequence[Any]  # SQLAlchemy rows: tuples with column names
_AS_LEARNED = [column for column in decisions.columns if column.name != "id"]


def rows_after(connection: Connection, table: Table, application_id: int, after: int, limit: int) -> Rows:
    """Return rows of decisions, rewards, activations or outcomes after an id."""
    query = select(table).where(table.c.application_id == application_id, table.c.id > after)
    return connection.execute(query.order_by(table.c.id).limit(limit)).all()


def rewards_of(connection: Connection, application_id: int, events: Sequence[str]) -> Rows:
    """Return the rewards of events in order of arrival."""
    query = select(rewards).where(rewards.c.application_id == application_id, rewards.c.event_id.in_(events))
    return connection.execute(query.order_by(rewards.c.id)).all()


def count_decisions(connection: Connection, application_id: int) -> int:
    query = select(func.count()).select_from(decisions).where(decisions.c.application_id == application_id)
    return int(connection.scalar(query) or 0)


def waited(connection: Connection, application_id: int, decided_before: float, after: int, limit: int) -> Rows:
    """Return (id, event_id, slot, decided_at) of counting decisions without an outcome whose wait time is over."""
    active = exists().where(
        activations.c.application_id == application_id, activations.c.event_id == decisions.c.event_id
    )
    query = select(decisions.c.id, decisions.c.event_id, decisions.c.slot, decisions.c.decided_at).where(
        decisions.c.application_id == application_id,
        decisions.c.id > after,
        decisions.c.decided_at <= decided_before,
        ~exists().where(outcomes.c.decision_id == decisions.c.id),
        or_(decisions.c.deferred.is_(False), active),
    )
    return connection.execute(query.order_by(decisions.c.id).limit(limit)).all()


def learned_rows(connection: Connection, application_id: int, after: int, limit: int) -> Rows:
    """Return outcomes after an id (`id`, `decision_id`, `reward`, `by_default`, `joined_at`) with decision columns."""
    own = [outcomes.c.id, outcomes.c.decision_id, outcomes.c.reward, outcomes.c.by_default, outcomes.c.joined_at]
    query = (
        select(*own, *_AS_LEARNED)
        .join(decisions, decisions.c.id == outcomes.c.decision_id)
        .where(outcomes.c.application_id == application_id, outcomes.c.id > after)
    )
    return connection.execute(query.order_by(outcomes.c.id).limit(limit)).all()


def settled_rows(connection: Connection, application_id: int, after: int, upto: int, limit: int) -> Rows:
    """Return outcomes in the order of their decisions, of decisions after one and up to another."""
    own = [outcomes.c.id, outcomes.c.decision_id, outcomes.c.reward, outcomes.c.by_default, outcomes.c.joined_at]
    query = (
        select(*own, *_AS_LEARNED)
        .join(decisions, decisions.c.id == outcomes.c.decision_id)
        .where(outcomes.c.application_id == application_id, outcomes.c.decision_id > after)
        .where(outcomes.c.decision_id <= upto)
    )
    return connection.execute(query.order_by(outcomes.c.decision_id).limit(limit)).all()


def event(connection: Connection, application_id: int, event_id: str) -> dict[str, Rows]:
    """Return all rows of an event: decisions (one per slot), rewards, activations and outcomes."""
    here = {
        table.name: connection.execute(
            select(table)
            .where(table.c.application_id == application_id, table.c.event_id == event_id)
            .order_by(table.c.id)
        ).all()
        for table in (decisions, rewards, activations)
    }
    numbers = [row.id for row in here["decisions"]]
    found = connection.execute(select(outcomes).where(outcomes.c.decision_id.in_(numbers)).order_by(outcomes.c.id))
    return {**here, "outcomes": found.all()}


def add_outcomes(connection: Connection, rows: Sequence[dict[str, Any]]) -> int:
    """Add rows with application_id, decision_id, reward, by_default, joined_at. The first outcome of a decision counts.

    Returns the number of new rows.
    """
    if not rows:
        return 0
    statement = _insert(connection, outcomes).on_conflict_do_nothing().returning(outcomes.c.id)
    return len(connection.execute(statement, list(rows)).all())


def put_minutes(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Insert or replace rows of `minutes`."""
    _upsert(connection, minutes, rows, [column.name for column in minutes.columns if not column.primary_key])


def read_minutes(connection: Connection, application_id: int, first: int, last: int) -> Rows:
    """Return the minutes from first to last, inclusive."""
    query = select(minutes).where(
        and_(minutes.c.application_id == application_id, minutes.c.minute >= first, minutes.c.minute <= last)
    )
    return connection.execute(query.order_by(minutes.c.minute)).all()


FAILED = "learning-failed-"  # note, with an application's number: why it is not learned from; empty: it is


def note(connection: Connection, name: str) -> str | None:
    """Return a note: text shared between processes."""
    return connection.scalar(select(meta.c.value).where(meta.c.name == name))


def put_note(connection: Connection, name: str, value: str) -> None:
    _upsert(connection, meta, [{"name": name, "value": value}], ["value"])


def _upsert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], replaced: list[str]) -> None:
    """Insert rows, or replace these columns of existing rows."""
    if rows:
        statement = _insert(connection, table)
        keys = [column.name for column in table.primary_key]
        values = {name: statement.excluded[name] for name in replaced}
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=values), list(rows))


def _insert(connection: Connection, table: Table) -> Any:
    return (sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert)(table)
