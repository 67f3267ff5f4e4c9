"""Rows for the tests of the service."""

from __future__ import annotations

from typing import Any

from o2pl.serving.entries import DecisionRow, RewardRow


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
