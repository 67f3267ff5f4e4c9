"""Deletion of decisions with their rewards, activations and outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from o2pl.serving.schema import activations, decisions, outcomes, rewards

AT_ONCE = 500  # events per transaction: with SQLite, servers wait for it


def delete_events(connection: Connection, application_id: int, events: Sequence[str]) -> int:
    """Delete the events' decisions, rewards, activations and outcomes. Returns the number of decisions."""
    of_events = (decisions.c.application_id == application_id, decisions.c.event_id.in_(events))
    connection.execute(delete(outcomes).where(outcomes.c.decision_id.in_(select(decisions.c.id).where(*of_events))))
    for table in (rewards, activations):
        connection.execute(delete(table).where(table.c.application_id == application_id, table.c.event_id.in_(events)))
    return int(connection.execute(delete(decisions).where(*of_events)).rowcount)
