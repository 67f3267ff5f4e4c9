"""Decisions that go, with all that hangs on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, select

from o2pl.serving.schema import activations, applications, decisions, models, outcomes, rewards

AT_ONCE = 500  # events of one transaction: servers wait meanwhile, on SQLite


def delete_events(connection: Connection, application_id: int, events: Sequence[str]) -> int:
    """Their decisions, rewards, activations and outcomes. How many decisions."""
    of_events = (decisions.c.application_id == application_id, decisions.c.event_id.in_(events))
    connection.execute(delete(outcomes).where(outcomes.c.decision_id.in_(select(decisions.c.id).where(*of_events))))
    for table in (rewards, activations):
        connection.execute(delete(table).where(table.c.application_id == application_id, table.c.event_id.in_(events)))
    return int(connection.execute(delete(decisions).where(*of_events)).rowcount)


def delete_models(connection: Connection, application_id: int) -> int:
    """Those that no decision cites, but the newest and the pinned one. How many."""
    cited = select(decisions.c.id).where(
        decisions.c.application_id == application_id, decisions.c.model_version == models.c.version
    )
    newest: Any = select(func.max(models.c.version)).where(
        models.c.application_id == application_id, models.c.withdrawn.is_(None)
    )
    pinned: Any = select(func.coalesce(applications.c.pinned, -1)).where(applications.c.id == application_id)
    gone = [
        row.version
        for row in connection.execute(
            select(models.c.version).where(
                models.c.application_id == application_id,
                ~cited.exists(),
                models.c.version < func.coalesce(newest.scalar_subquery(), 0),
                models.c.version != pinned.scalar_subquery(),
            )
        )
    ]
    connection.execute(delete(models).where(models.c.application_id == application_id, models.c.version.in_(gone)))
    return len(gone)
