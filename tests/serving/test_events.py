"""Stored decisions are made again bit for bit, whatever has changed since, and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.serving import deciders
from tests.serving.clients import RANK, inside

from o2pl.errors import InvalidInput
from o2pl.serving.events import DecisionDiffers, explain_event
from o2pl.serving.schema import decisions
from o2pl.serving.settings import Settings

CALL = {
    "contextFeatures": [{"user": "u0"}],
    "actions": [{"id": name, "features": [{"x": 0.3 + k}]} for k, name in enumerate("abc")],
}


def events(folder: Path, kind: str, settings: Settings, decider: Any, path: str, call: Any, n: int = 12) -> None:
    """Decisions of a real server: before the model, with it, and after other settings."""
    with inside(folder, kind, settings) as running:
        store = running.service.store
        for k in range(n):
            if k == n // 3:
                store.add_model(1, decider.to_bytes(), 0, 0)
                running.service.models.refresh()
            if k == 2 * n // 3:
                store.put_settings(1, Settings(**{**_fields(settings), "exploration_percentage": 0.3}))
                running.service.models.refresh()
            assert running.client.post(path, json={**call, "eventId": f"e{k}"}).status_code in (200, 201)
        store.put_settings(1, settings)
        application = store.application(1)
        for k in range(n):
            (found,) = explain_event(store, application, f"e{k}")
            assert found.row.exploration == (0.3 if k >= 2 * n // 3 else 0.0)
            assert found.row.model_version == (0 if k < n // 3 else 1)
            assert found.drawn.propensity == found.row.propensity
            why = found.explanation
            assert (why is None) == (k < n // 3 or kind == "continuous")
            if why is not None:
                assert why.action == found.names[found.row.action]
                assert why.propensity == pytest.approx(found.row.propensity)
                assert {feature.name for feature in why.features} & {"shared.user", "user", "id"}
        with store.writing() as connection:
            connection.execute(
                update(decisions).where(decisions.c.event_id == "e5").values(uniform=0.123456, value=1.0)
            )
            connection.execute(update(decisions).where(decisions.c.event_id == "e6").values(propensity=0.1234567))
        for name in ("e5", "e6"):
            with pytest.raises(DecisionDiffers, match="the recomputed decision differs"):
                explain_event(store, application, name)
        with pytest.raises(InvalidInput, match="found no event 'nobody'"):
            explain_event(store, application, "nobody")


def _fields(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__}


def test_ranked(tmp_path: Path) -> None:
    events(tmp_path, "ranked", Settings(), deciders.ranked(), RANK, CALL)


def test_fixed(tmp_path: Path) -> None:
    settings = Settings(actions=("left", "middle", "right"))
    events(tmp_path, "fixed", settings, deciders.fixed(), "/decide", {"context": {"user": "u0"}, "exclude": ["middle"]})


def test_continuous(tmp_path: Path) -> None:
    settings = Settings(bounds=(0.0, 10.0))
    events(tmp_path, "continuous", settings, deciders.continuous(), "/decide", {"context": [0.1, -0.4]})
