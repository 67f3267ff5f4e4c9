"""Versions of models live as long as events name them."""

from __future__ import annotations

import time

from sqlalchemy import and_, delete, func, or_, select

from o2pl.serving.schema import applications, decisions, models
from o2pl.serving.store import Store

_NEWEST = 20  # versions that stay in any case, to roll back to
_UNSEEN = 3600.0  # seconds: a version that no decision was counted of after so long has none


def prune_models(store: Store, application_id: int) -> int:
    """Delete versions of which no decision is left, that are not pinned and not among the newest; how many.

    `minutes` counts decisions and notes the last one of each version.
    """
    own = models.c.application_id == application_id
    with store.writing() as connection:
        newest = connection.scalar(select(func.max(models.c.version)).where(own)) or 0
        pinned = connection.scalar(select(applications.c.pinned).where(applications.c.id == application_id)) or 0
        oldest = connection.scalar(select(func.min(decisions.c.id)).where(decisions.c.application_id == application_id))
        unseen = and_(models.c.last_decision.is_(None), models.c.created_at < time.time() - _UNSEEN)
        unnamed = or_(unseen, models.c.last_decision < (2**62 if oldest is None else oldest))
        gone = delete(models).where(own, models.c.version <= newest - _NEWEST, models.c.version != pinned, unnamed)
        return int(connection.execute(gone).rowcount)
