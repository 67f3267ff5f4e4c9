"""Stores are made, recognised and brought up to this version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection
from tests.serving.example_store import FOLDER, KEY
from tests.serving.rows import decision, reward

from o2pl.errors import InvalidInput
from o2pl.serving import migrations, schema
from o2pl.serving.batch_writes import Answer
from o2pl.serving.store import Store

BOTH = True  # databases


def test_a_store_is_opened_again(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.sqlite") as store:
        key = store.add_application("shop").write_key
    with Store.open(tmp_path / "a.sqlite") as store:
        assert store.role_of(key) is not None


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    Store.open(tmp_path / "a.sqlite").close()
    with sqlite3.connect(tmp_path / "a.sqlite") as raw:
        raw.execute("UPDATE meta SET value = '99'")
    raw.close()
    with pytest.raises(InvalidInput, match="found schema version 99"):
        Store.open(tmp_path / "a.sqlite")


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a letter to a friend, long enough to be a header of a file, or so it may seem\n" * 20)
    with pytest.raises(InvalidInput, match="not a SQLite file"):
        Store.open(text)
    with sqlite3.connect(tmp_path / "other.sqlite") as raw:
        raw.execute("CREATE TABLE letters (a)")
    raw.close()
    with pytest.raises(InvalidInput, match=r"other tables \(letters\)"):
        Store.open(tmp_path / "other.sqlite")


# -- older stores


def made_from(example: Path, folder: Path) -> Path:
    raw = sqlite3.connect(folder / "old.sqlite")
    raw.executescript(example.read_text())
    raw.close()
    return folder / "old.sqlite"


def shape(store: Store) -> list[str]:
    """Tables and indices, as they are defined."""
    with store.reading() as connection:
        texts = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").scalars()
        return sorted(" ".join(text.replace('"', "").split()) for text in texts)


@pytest.mark.parametrize("example", sorted(FOLDER.glob("version-*.sql")), ids=lambda path: path.stem)
def test_a_store_of_every_version_opens(example: Path, tmp_path: Path) -> None:
    """See `example_store.py` where this fails since tables were changed."""
    with Store.open(made_from(example, tmp_path)) as store, Store.open(tmp_path / "new.sqlite") as new:
        assert shape(store) == shape(new)
        assert store.role_of(KEY) == (1, "write")
        found = store.event(1, "e1")
        assert {name: len(rows) for name, rows in found.items()} == dict.fromkeys(found, 1)
        assert found["decisions"][0].propensity == 0.5
        assert store.model_body(1, store.served_version(1)) == b"a model"
        assert store.add([decision("e2"), decision("e3")]) == [Answer.DUPLICATE, Answer.STORED]
        assert [row.id for row in store.decisions_after(1)] == [1, 2, 3]


def test_this_version_has_its_example() -> None:
    assert (FOLDER / f"version-{schema.VERSION}.sql").exists()


def test_a_store_of_version_2_gets_its_columns_and_goes_on(store: Store) -> None:
    """On both databases; a step that was cut off after its tables is taken again."""
    store.add_application("page")
    store.add([decision("a")])
    with store.writing() as connection:
        connection.exec_driver_sql("DROP TABLE imports")
        for table, columns in {"decisions": ("experiment", "unit", "control"), "rewards": ("metrics",)}.items():
            for column in columns:
                connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.exec_driver_sql("ALTER TABLE trainings DROP COLUMN import_id")
        connection.exec_driver_sql("UPDATE meta SET value = '2' WHERE name = 'schema version'")
    with Store.open(store.engine.url.render_as_string(hide_password=False)) as again:
        assert again.add([decision("b", control=True, unit="u"), reward("b", metrics='{"x":1}')]) == [Answer.STORED] * 2
        old, new = again.decisions_after(1)
        assert (old.control, old.unit, new.control, new.unit) == (None, None, True, "u")
        assert again.rewards_after(1)[0].metrics == '{"x":1}'


def add_weather(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE decisions ADD COLUMN weather TEXT")


def fill_weather(connection: Connection) -> None:
    connection.exec_driver_sql("UPDATE decisions SET weather = 'fine'")


def fails(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM decisions")
    raise RuntimeError


def test_steps_are_taken_in_order_and_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add([decision("a")])
    where = store.engine.url.render_as_string(hide_password=False)
    now = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", now + 2)
    monkeypatch.setattr(migrations, "STEPS", {now: add_weather, now + 1: fill_weather})
    for _ in range(2):  # the second time there is nothing to do
        with Store.open(where) as newer, newer.reading() as connection:
            assert connection.exec_driver_sql("SELECT weather FROM decisions").scalars().all() == ["fine"]
    monkeypatch.setattr(schema, "VERSION", now + 1)
    with pytest.raises(InvalidInput, match="made by a newer o2pl"):
        Store.open(where)


def test_a_step_that_fails_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add([decision("a")])
    with monkeypatch.context() as changed:
        now = schema.VERSION
        changed.setattr(schema, "VERSION", now + 2)
        changed.setattr(migrations, "STEPS", {now: add_weather, now + 1: fails})
        with pytest.raises(RuntimeError):
            Store.open(store.engine.url.render_as_string(hide_password=False))
    with Store.open(store.engine.url.render_as_string(hide_password=False)) as again:
        (row,) = again.decisions_after(1)
        assert not hasattr(row, "weather")
