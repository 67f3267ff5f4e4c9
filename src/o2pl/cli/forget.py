"""`o2pl forget`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.database import asked_of_database, opened_database
from o2pl.cli.options import Database
from o2pl.cli.progress import counted_progress
from o2pl.errors import InvalidInput

EXAMPLES = "`o2pl forget --where user.id=17`; `o2pl forget model.o2pl --event 0f3a5c77b2d94e10`."


def forget_person(
    path: Annotated[
        Path | None, typer.Argument(metavar="[MODEL|LOG]", help="A saved learner, or a log. [default: the database]")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="A feature and its value, such as `user.id=17`: selects events with this context."),
    ] = None,
    event: Annotated[list[str] | None, typer.Option(help="An event id. Can be repeated.")] = None,
    events: Annotated[
        Path | None, typer.Option(help="Parquet, Arrow or CSV with event ids, in the column `event_id`.")
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(help="New path of an exported log that was moved. Can be repeated."),
    ] = None,
    app: Annotated[str | None, typer.Option("--app", help="Limit to this application. [default: all]")] = None,
    database: Database = None,
) -> None:
    """Erase a person's events: from a saved learner, from a log, or from a service's database.

    A saved learner learns from its remaining rows again. A log is rewritten without these rows. From a database, events
    are erased with the exported files and the learned models: the trainer retrains on the remaining rows. Copies and
    earlier backups still contain the events.
    """
    ids = [*(event or ()), *(_ids_to_forget(events) if events is not None else ())]
    if where is None and not ids:
        raise InvalidInput("forget: found neither --where nor --event, expected at least one of them")
    if path is not None:
        if file or app is not None or database is not None:
            raise InvalidInput(f"forget: found {str(path)!r} with options for a database, expected one of both")
        typer.echo(_forget_in_file(path, where, ids))
        return
    with opened_database(database) as store:
        from o2pl.formats.erasing import Where
        from o2pl.serving import erasure

        person = None if where is None else Where.parsed(where)
        with counted_progress("events checked") as progress:
            gone = erasure.forget(store, asked_of_database(store, app), person, ids, file or (), progress)
        postgres = store.engine.dialect.name == "postgresql"
    typer.echo(f"{gone.decisions:,} decisions erased")
    for moved, rows in gone.files.items():
        typer.echo(f"{rows:,} rows erased from {moved}")
    for lost in gone.missing:
        typer.echo(f"no longer found, so not checked: {lost}; if it was moved, pass --file PATH", err=True)
    if postgres:
        typer.echo("PostgreSQL keeps the deleted bytes on disk until you run VACUUM FULL decisions", err=True)


def _ids_to_forget(path: Path) -> list[str]:
    """Return the ids in a file."""
    from o2pl.formats.files import kind_of_file, read_file_table
    from o2pl.formats.log_tables import bad_rows_of_log_table

    table = read_file_table(path, bad_rows_of_log_table(path, kind_of_file(path), 0))
    if "event_id" not in table.column_names:
        raise InvalidInput(f"{path.name}: found columns {table.column_names}, expected 'event_id'")
    return [str(each) for each in table.column("event_id").to_pylist()]


def _forget_in_file(path: Path, where: str | None, ids: list[str]) -> str:
    from o2pl.formats.erasing import Where, erase
    from o2pl.formats.files import kind_of_file
    from o2pl.learners.base import load

    if kind_of_file(path) != "learner":
        rows = erase(path, None if where is None else Where.parsed(where), set(ids))
        return f"{rows:,} rows erased from {path}"
    if where is not None:
        raise InvalidInput("where: found with a model, which keeps no contexts as they were, expected --event")
    learner = load(path)
    if not hasattr(learner, "forget"):
        raise InvalidInput(f"{path.name}: found a policy without its log, expected a saved learner; fit it again")
    rows = learner.forget(ids)
    learner.save(path)
    return f"{rows:,} decisions erased from {path}, which has learned from the remaining {len(learner.log_):,} rows"
