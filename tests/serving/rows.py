"""Rows for the tests of the service."""

from __future__ import annotations

from typing import Any

from o2pl.serving.batch_writes import DecisionRow, RewardRow
from o2pl.serving.store import Store


def decision(event: str, application: int = 1, **changes: Any) -> DecisionRow:
    row = DecisionRow(
        application_id=application,
        event_id=event,
        slot="",
        decided_at=1000.0,
        context=b'{"user":{"id":"u1"},"_multi":[{"id":"a"},{"id":"b"}]}',
        actions=b'["a","b"]',
        action=1,
        value=None,
        propensity=0.5,
        probabilities=None,
        uniform=0.7,
        exploration=0.0,
        model_version=0,
    )
    return row._replace(**changes)


def reward(event: str, value: float = 1.0, application: int = 1, **changes: Any) -> RewardRow:
    return RewardRow(application, event, "", value, 1001.0)._replace(**changes)


def joined(store: Store, application: int = 1, default: float = 0.0) -> None:
    """Outcomes of all decisions, each with its first reward: what a trainer does."""
    first: dict[tuple[str, str], float] = {}
    for row in store.rewards_after(application, limit=100_000):
        first.setdefault((row.event_id, row.slot), row.value)
    rows = []
    for row in store.decisions_after(application, limit=100_000):
        key = (row.event_id, row.slot)
        rows.append(
            {
                "application_id": application, "decision_id": row.id, "reward": first.get(key, default),
                "by_default": key not in first, "joined_at": 2000.0,
            }
        )  # fmt: skip
    store.add_outcomes(rows)
