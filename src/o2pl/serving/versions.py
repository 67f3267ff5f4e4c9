"""Model versions of an application: published, served, withdrawn, pinned."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from o2pl.errors import InvalidInput
from o2pl.serving.schema import applications, models

_BUT_BODY = [column for column in models.columns if column.name != "body"]


def add_model(connection: Connection, application_id: int, body: bytes, outcome_id: int, rows: int) -> int:
    """Publish a model. Returns its version. outcome_id: last outcome learned from; rows: their number."""
    connection.execute(select(applications.c.id).where(applications.c.id == application_id).with_for_update())
    newest = select(func.coalesce(func.max(models.c.version), 0)).where(models.c.application_id == application_id)
    version = int(connection.scalar(newest) or 0) + 1
    connection.execute(
        insert(models).values(
            application_id=application_id, version=version, created_at=time.time(), outcome_id=outcome_id, rows=rows,
            body=body,
        )
    )  # fmt: skip
    return version


def served_version(connection: Connection, application_id: int) -> int:
    """Return the pinned version, else the newest that is not withdrawn; 0: none."""
    pinned = connection.scalar(select(applications.c.pinned).where(applications.c.id == application_id))
    if pinned is not None:
        return int(pinned)
    newest = select(func.max(models.c.version)).where(
        models.c.application_id == application_id, models.c.withdrawn.is_(None)
    )
    return int(connection.scalar(newest) or 0)


def model_body(connection: Connection, application_id: int, version: int) -> bytes:
    query = select(models.c.body).where(models.c.application_id == application_id, models.c.version == version)
    body = connection.scalar(query)
    if body is None:
        raise InvalidInput(f"model: found no version {version}, expected a version from `o2pl models list`")
    return bytes(body)


def model_versions(connection: Connection, application_id: int, limit: int = 1000) -> Sequence[Any]:
    """Return all columns but the body, newest first."""
    query = select(*_BUT_BODY).where(models.c.application_id == application_id)
    return connection.execute(query.order_by(models.c.version.desc()).limit(limit)).all()


def withdraw(connection: Connection, application_id: int, version: int, why: str | None) -> None:
    """Withdraw a version; why=None: allow it again."""
    found = connection.execute(
        update(models)
        .where(models.c.application_id == application_id, models.c.version == version)
        .values(withdrawn=why)
    )
    if not found.rowcount:
        raise InvalidInput(f"model: found no version {version}, expected a version from `o2pl models list`")


def pin(connection: Connection, application_id: int, version: int | None) -> None:
    """Pin this version; None: serve the newest again; 0: uniform decisions."""
    if version:
        model_body(connection, application_id, version)
    connection.execute(update(applications).where(applications.c.id == application_id).values(pinned=version))


def roll_back(connection: Connection, application_id: int, to: int | None, why: str) -> tuple[int, list[int]]:
    """Pin an earlier version, withdraw all later ones, and return both. to=None: the one before the served version."""
    served, known = served_version(connection, application_id), model_versions(connection, application_id, 10**6)
    if not served:
        raise InvalidInput("models: found uniform decisions served, expected a version to roll back from")
    good = [row.version for row in known if row.withdrawn is None and row.version < served]
    target = (good[0] if good else 0) if to is None else to
    if target >= served:
        raise InvalidInput(f"to: found version {target}, expected one before {served}, which is served")
    gone = sorted(row.version for row in known if row.version > target and row.withdrawn is None)
    for version in gone:
        withdraw(connection, application_id, version, why)
    pin(connection, application_id, target)
    return target, gone
