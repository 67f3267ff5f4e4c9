"""Personalizer's calls about the log: the period it covers, and its deletion."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import func, select

from o2pl.serving.personalizer_api import PREFIX, VERSIONS
from o2pl.serving.problems import NO_CONTENT, Reply, as_json
from o2pl.serving.retention import delete_old
from o2pl.serving.schema import decisions
from o2pl.serving.service import Call, Route, in_versions


class DateRange(Struct, rename={"begin": "from", "end": "to"}):
    """The times of the oldest and the newest stored decision; null: there is none."""

    begin: str | None
    end: str | None


class LogsProperties(Struct, rename="camel"):
    """Properties of the log."""

    date_range: DateRange


async def properties(call: Call) -> Reply:
    store, own = call.service.store, decisions.c.application_id == call.served.application.id

    def ends() -> Any:
        with store.reading() as connection:
            at = decisions.c.decided_at
            return connection.execute(select(func.min(at), func.max(at)).where(own)).one()

    first, last = await call.service.blocking(ends)
    return as_json(200, LogsProperties(DateRange(_iso(first), _iso(last))))


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


async def delete(call: Call) -> Reply:
    """Delete all events until now, as `o2pl retain --days 0` does. Models stay."""
    await call.service.blocking(delete_old, call.service.store, call.served.application, time.time(), 0)
    return NO_CONTENT


_CODE, _TAG = "ResourceNotFound", "settings"
_OWN = [
    Route("GET", "/logs/properties", properties, _CODE, "The period that the log covers", "read")._replace(
        answer=LogsProperties
    ),
    Route("DELETE", "/logs", delete, _CODE, "Delete all events of the log; models stay", status=204),
]
ROUTES = in_versions([route._replace(tag=_TAG) for route in _OWN], PREFIX, VERSIONS, VERSIONS[0])
