"""Retention: deletes decisions older than `logRetentionDays` with their rewards and outcomes, and unused models."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select

from o2pl.formats.files import write_file_tables
from o2pl.serving.applications import Application
from o2pl.serving.deletion import AT_ONCE, delete_events
from o2pl.serving.export import remember, tables
from o2pl.serving.pruning import prune_models
from o2pl.serving.schema import decisions
from o2pl.serving.store import Store

_DAY = 86400.0


class Deleted(NamedTuple):
    """The numbers of deleted rows, and the path of the archive."""

    decisions: int
    models: int
    archive: Path | None


def delete_old(
    store: Store,
    application: Application,
    now: float,
    days: int | None = None,
    archive: Path | None = None,
    at_most: int | None = None,
) -> Deleted:
    """Delete old decisions. days: overrides the settings. archive: folder for a Parquet copy of the deleted rows.

    The age of an event is that of its decision. Deletion is done in batches, so that servers keep running. at_most:
    limit of events; None: all.
    """
    gone, kept = 0, None
    days = application.settings.log_retention_days if days is None else days
    if days >= 0:
        before = now - days * _DAY
        kept = _archived(store, application, before, archive) if archive is not None else None
        while (at_most is None or gone < at_most) and (events := _old(store, application.id, before)):
            with store.writing() as connection:
                gone += delete_events(connection, application.id, events)
    return Deleted(gone, prune_models(store, application.id), kept)


def _old(store: Store, application_id: int, before: float) -> list[str]:
    query = (
        select(decisions.c.event_id)
        .where(decisions.c.application_id == application_id, decisions.c.decided_at < before)
        .order_by(decisions.c.decided_at)
        .limit(AT_ONCE)
    )
    with store.reading() as connection:
        return list(dict.fromkeys(connection.scalars(query)))


def _archived(store: Store, application: Application, before: float, folder: Path) -> Path | None:
    found = tables(store, application, decided_before=before)
    first = next(found, None)
    if first is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    moment = datetime.fromtimestamp(before, UTC).strftime("%Y-%m-%dT%H%M%S")
    name = re.sub(r"[^\w.-]", "_", application.name)  # valid in file names
    out = folder / f"{name}-before-{moment}.parquet"
    write_file_tables(out, chain([first], found))
    remember(store, out)
    return out
