"""Decisions that go, with all that hangs on them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from o2pl.serving.schema import activations, decisions, outcomes, rewards

AT_ONCE = 500  # events of one transaction: servers wait meanwhile, on SQLite


def delete_events(connection: Connection, application_id: int, events: Sequence[str]) -> int:
    """Their decisions, rewards, activations and outcomes. How many decisions."""
    of_events = (decisions.c.application_id == application_id, decisions.c.event_id.in_(events))
    connection.execute(delete(outcomes).where(outcomes.c.decision_id.in_(select(decisions.c.id).where(*of_events))))
    for table in (rewards, activations):
        connection.execute(delete(table).where(table.c.application_id == application_id, table.c.event_id.in_(events)))
    return int(connection.execute(delete(decisions).where(*of_events)).rowcount)
