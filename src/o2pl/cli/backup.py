"""`o2pl backup`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.database import opened_database
from o2pl.cli.options import Database
from o2pl.errors import InvalidInput

EXAMPLES = "`o2pl backup backup.sqlite`; `o2pl backup noon.sqlite --until 2026-11-19T12:00:00+00:00`."


def back_up(
    out: Annotated[Path, typer.Argument(help="A new file, such as `backup.sqlite`.")],
    until: Annotated[
        str | None,
        typer.Option(help="The log and the models as they were at this time, such as `2026-11-19T12:00:00+00:00`."),
    ] = None,
    database: Database = None,
) -> None:
    """Copy the SQLite database while it is in use. For PostgreSQL, use `pg_dump`.

    OUT appears only when it is complete. To restore it, stop the service and replace the database file with it. With
    --until, applications, settings and keys are those of now, and the trainer learns again from the events.
    """
    with opened_database(database) as store:
        from o2pl.serving import backup

        size = backup.back_up(store, out, None if until is None else _seconds(until))
    typer.echo(f"{size / 1e6:,.1f} MB: {out}")


def _seconds(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"until: found {text!r}, expected a time such as 2026-11-19T12:00:00+00:00") from None
    if found.tzinfo is None:
        raise InvalidInput(f"until: found {text!r}, expected a time with its zone, such as {text}+00:00")
    return found.timestamp()
