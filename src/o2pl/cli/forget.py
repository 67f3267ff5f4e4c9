"""`o2pl forget`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.database import asked, opened
from o2pl.cli.options import Database
from o2pl.cli.progress import counting
from o2pl.errors import InvalidInput

EXAMPLES = "`o2pl forget --where user.id=17`."


def forget_person(
    where: Annotated[
        str | None,
        typer.Option(help="A feature and its value, such as `user.id=17`: selects events with this context."),
    ] = None,
    event: Annotated[list[str] | None, typer.Option(help="An event id. Can be repeated.")] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(help="New path of an exported log that was moved. Can be repeated."),
    ] = None,
    app: Annotated[str | None, typer.Option("--app", help="Limit to this application. [default: all]")] = None,
    database: Database = None,
) -> None:
    """Erase a person's events from the database, the exported files and the learned models.

    The trainer retrains on the remaining rows. Earlier backups still contain the events.
    """
    if where is None and not event:
        raise InvalidInput("forget: found neither --where nor --event, expected at least one of them")
    with opened(database) as store:
        from o2pl.serving import forget

        person = None if where is None else forget.Where.parsed(where)
        with counting("events checked") as progress:
            gone = forget.forget(store, asked(store, app), person, event or (), file or (), progress)
        postgres = store.engine.dialect.name == "postgresql"
    typer.echo(f"{gone.decisions:,} decisions erased")
    for path, rows in gone.files.items():
        typer.echo(f"{rows:,} rows erased from {path}")
    for path in gone.missing:
        typer.echo(f"no longer found, so not checked: {path}; if it was moved, pass --file PATH", err=True)
    if postgres:
        typer.echo("PostgreSQL keeps the deleted bytes on disk until you run VACUUM FULL decisions", err=True)
