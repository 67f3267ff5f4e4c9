"""The tables can be made on SQLite, and number their rows by themselves."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, insert, select
from sqlalchemy.exc import IntegrityError
from tests.serving.postgres import Postgres

from o2pl.serving import schema
from o2pl.serving.store import Store


def test_contexts_are_made_small_fast(postgres: Postgres) -> None:
    postgres.empty()
    with Store.open(postgres.url) as store, store.reading() as connection:
        how = "SELECT attcompression FROM pg_attribute WHERE attrelid = 'decisions'::regclass AND attname = 'context'"
        ways = "SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
        built = connection.exec_driver_sql(ways)
        assert connection.exec_driver_sql(how).scalar() == ("l" if built.scalar() else "")


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
