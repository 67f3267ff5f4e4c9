"""The tables can be made on SQLite, and number their rows by themselves."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, insert, select
from sqlalchemy.exc import IntegrityError

from o2pl.serving import schema


def test_ids_grow_and_an_event_is_there_once() -> None:
    engine = create_engine("sqlite://")
    schema.metadata.create_all(engine)
    row = {
        "application_id": 1, "event_id": "a", "slot": "", "decided_at": 0.0, "context": b"{}", "propensity": 1.0,
        "uniform": 0.5, "model_version": 0, "deferred": False,
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(schema.decisions), [row, {**row, "slot": "b"}, {**row, "application_id": 2}])
        assert connection.scalars(select(schema.decisions.c.id)).all() == [1, 2, 3]
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(schema.decisions), [row])
