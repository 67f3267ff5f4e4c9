"""Pruning of model versions: a version is kept as long as events refer to it."""

from __future__ import annotations

import time

from sqlalchemy import and_, delete, func, or_, select

from o2pl.serving.applications import find_application
from o2pl.serving.schema import applications, decisions, models
from o2pl.serving.store import Store

_NEWEST = 20  # newest versions that are always kept, for rollbacks
_UNSEEN = 3600.0  # seconds after which a version without counted decisions is unused


def prune_models(store: Store, application_id: int) -> int:
    """Delete versions without decisions that are neither pinned nor among the newest. Returns their number.

    `minutes` stores the last decision of each version.
    """
    own = models.c.application_id == application_id
    with store.writing() as connection:
        newest = connection.scalar(select(func.max(models.c.version)).where(own)) or 0
        pinned = connection.scalar(select(applications.c.pinned).where(applications.c.id == application_id)) or 0
        oldest = connection.scalar(select(func.min(decisions.c.id)).where(decisions.c.application_id == application_id))
        unseen = and_(models.c.last_decision.is_(None), models.c.created_at < time.time() - _UNSEEN)
        unnamed = or_(unseen, models.c.last_decision < (2**62 if oldest is None else oldest))
        compared = find_application(connection, application_id).settings.control_version or 0
        kept = (pinned, compared)
        gone = delete(models).where(own, models.c.version <= newest - _NEWEST, models.c.version.not_in(kept), unnamed)
        return int(connection.execute(gone).rowcount)
