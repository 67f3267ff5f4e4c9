"""Migrations: stores with an older schema are upgraded step by step when they are opened."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, Engine, Table, inspect, select

from o2pl.errors import InvalidInput
from o2pl.serving import schema
from o2pl.serving.database import SCHEMA, reading, writing

# Steps from each version to the next. A step changes tables in place and scans no large ones.


def _add_cuts(connection: Connection) -> None:
    schema.metadata.create_all(connection, [schema.trainings, schema.cuts])


def _add_imports(connection: Connection) -> None:
    schema.metadata.create_all(connection, [schema.imports])
    _add_columns(connection, schema.trainings, "import_id")


def _add_control(connection: Connection) -> None:
    _add_columns(connection, schema.decisions, "experiment", "unit", "control")
    _add_columns(connection, schema.rewards, "metrics")


def _add_expiry(connection: Connection) -> None:
    _add_columns(connection, schema.keys, "expires_at")


def _add_columns(connection: Connection, table: Table, *names: str) -> None:
    """Add columns without a value, unless a step before has made the table with them."""
    known = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for name in names:
        if name not in known:
            kind = table.c[name].type.compile(connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}")


STEPS: dict[int, Callable[[Connection], None]] = {1: _add_cuts, 2: _add_imports, 3: _add_control, 4: _add_expiry}
_NAME = "schema version"


def prepare(engine: Engine) -> None:
    """Create the tables, or upgrade existing ones to this version."""
    with reading(engine) as connection:
        if _version(connection) == schema.VERSION:
            return
    with writing(engine, SCHEMA) as connection:  # another process may have done it already
        _bring_up(connection)


def _version(connection: Connection) -> int | None:
    """Return the schema version; None: an empty database."""
    tables = inspect(connection).get_table_names()
    if schema.meta.name not in tables:
        if tables:
            some = ", ".join(sorted(tables)[:3])
            raise InvalidInput(f"database: found other tables ({some}), expected none or those of o2pl")
        return None
    found = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.name == _NAME))
    if found is None or not found.isdecimal():
        raise InvalidInput(f"database: found tables without a {_NAME}, expected those of o2pl")
    if int(found) > schema.VERSION:
        raise InvalidInput(
            f"database: found {_NAME} {found}, expected at most {schema.VERSION}; it was made by a newer o2pl: update"
            " o2pl"
        )
    return int(found)


def _bring_up(connection: Connection) -> None:
    version = _version(connection)
    if version is None:
        schema.metadata.create_all(connection)
        connection.execute(schema.meta.insert().values(name=_NAME, value=str(schema.VERSION)))
        return
    for number in range(version, schema.VERSION):
        STEPS[number](connection)
    connection.execute(schema.meta.update().where(schema.meta.c.name == _NAME).values(value=str(schema.VERSION)))
