"""`o2pl app`, `o2pl backup`, `o2pl export`, `o2pl forget`, `o2pl retain`: manage the service's database."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2pl.errors import InvalidInput, nearest
from o2pl.extras import require_extra

if TYPE_CHECKING:
    from o2pl.serving.applications import Application
    from o2pl.serving.store import Store

Database = Annotated[
    str | None,
    typer.Option(
        help="A SQLite file, or `postgresql://user@host/name`. [default: O2PL_DATABASE, else `o2pl.sqlite` here]"
    ),
]
App = Annotated[str | None, typer.Option("--app", help="The application's name. [default: the only one]")]


@contextmanager
def opened(database: str | None, new: bool = False) -> Iterator[Store]:
    """Open the database for a command. new: create it if it does not exist."""
    require_extra("serve", "the decision service")
    from o2pl.serving.database import where_is
    from o2pl.serving.store import Store

    where = where_is(database)
    if not new and "://" not in str(where) and not Path(where).exists():
        raise InvalidInput(f"database: found no file {str(where)!r}, expected a database made by `o2pl serve`")
    with Store.open(where) as store:
        yield store


def chosen(store: Store, name: str | None) -> Application:
    """Return the application of this name, or the only one."""
    if name is not None:
        return store.application(name)
    found = store.applications()
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        raise InvalidInput(f"app: found {len(found)} applications ({names}), expected one; choose with --app NAME")
    return found[0]


# -- applications


def add(
    name: Annotated[str, typer.Argument(help="Name of the application.")],
    kind: Annotated[
        str,
        typer.Option(
            help="`ranked`: each call sends its actions; `fixed`: needs --actions; `continuous`: needs --bounds."
        ),
    ] = "ranked",
    actions: Annotated[str | None, typer.Option(help="Comma-separated action names, for kind `fixed`.")] = None,
    bounds: Annotated[
        str | None, typer.Option(help="Lowest and highest action, such as `0,10`, for kind `continuous`.")
    ] = None,
    rewards: Annotated[str, typer.Option(help="Lowest and highest possible reward.")] = "0,1",
    database: Database = None,
) -> None:
    """Add an application with its own learner, settings, keys and log. Its two keys are shown only once."""
    with opened(database, new=True) as store:
        from o2pl.serving import settings

        kinds = [each.value for each in settings.Kind]
        if kind not in kinds:
            raise InvalidInput(f"kind: found {kind!r}, {nearest(kind, kinds)}")
        values: dict[str, Any] = {"rewardRange": _two_numbers("rewards", rewards)}
        if actions is not None:
            values["actions"] = [each.strip() for each in actions.split(",") if each.strip()]
        if bounds is not None:
            values["bounds"] = _two_numbers("bounds", bounds)
        made = store.add_application(name, kind, settings.made(values, settings.Kind(kind)))
    typer.echo(f"application: {name}")
    typer.echo(f"write key:   {made.write_key}")
    typer.echo(f"read key:    {made.read_key}")
    typer.echo("Copy the keys now: they are not stored. `o2pl app key` makes new ones.", err=True)


def _two_numbers(name: str, text: str) -> list[float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"{name}: found {text!r}, expected two numbers, such as 0,1") from None
    return [low, high]


def list_applications(database: Database = None) -> None:
    """List the applications with their kinds and numbers of decisions."""
    with opened(database) as store:
        from rich.console import Console
        from rich.table import Table

        table = Table("name", "kind", "decisions", "model", "wait", "rewards", "kept")
        for each in store.applications():
            settings, counted = each.settings, store.count_decisions(each.id)
            days = settings.log_retention_days
            table.add_row(
                each.name, each.kind, f"{counted:,}", str(store.served_version(each.id)),
                str(settings.reward_wait_time), "{:g} to {:g}".format(*settings.reward_range),
                "for ever" if days < 0 else f"{days} days",
            )  # fmt: skip
        Console().print(table)


def new_key(
    name: Annotated[str, typer.Argument(help="Name of the application.")],
    role: Annotated[
        str, typer.Option(help="`write`: rank, reward, settings; `read`: dashboard and exports.")
    ] = "write",
    replace: Annotated[bool, typer.Option("--replace", help="Revoke the older keys of this role.")] = False,
    database: Database = None,
) -> None:
    """Create another key and print it; it is shown only once."""
    with opened(database) as store:
        from o2pl.serving import applications

        application = store.application(name)
        with store.writing() as connection:
            key = applications.add_key(connection, application.id, role)
            gone = applications.delete_keys(connection, application.id, role, but=key) if replace else 0
    typer.echo(key)
    if replace:
        typer.echo(f"{gone} older keys revoked; running servers notice within seconds", err=True)


# -- the log


def back_up(
    out: Annotated[Path, typer.Argument(help="A new file, such as `backup.sqlite`.")], database: Database = None
) -> None:
    """Copy the SQLite database while it is in use. For PostgreSQL, use `pg_dump`.

    OUT appears only when it is complete. To restore it, stop the service and replace the database file with it.
    """
    with opened(database) as store:
        from o2pl.serving import backup

        size = backup.back_up(store, out)
    typer.echo(f"{size / 1e6:,.1f} MB: {out}")


def export_log(
    out: Annotated[Path, typer.Argument(help="`.parquet`, `.arrow`, `.csv`, `.dsjson` or `.vw` (VW's text).")],
    app: App = None,
    database: Database = None,
) -> None:
    """Export the joined log: each decision with its reward. The file extension of OUT sets the format."""
    with opened(database) as store:
        from o2pl.serving import export
        from o2pl.serving.joining import join

        application = chosen(store, app)
        join(store, application, time.time())  # the trainer may be behind or not running
        with _counting("rows") as progress:
            rows = export.export(store, application, out, progress)
        waiting = store.count_decisions(application.id) - rows
    typer.echo(f"{rows:,} rows: {out}")
    if waiting > 0:
        typer.echo(f"{waiting:,} decisions have no outcome yet and are not exported", err=True)
    typer.echo(f"to inspect it: o2pl describe {out}", err=True)


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

        asked = None if where is None else forget.Where.parsed(where)
        applications = [store.application(app)] if app is not None else store.applications()
        with _counting("events checked") as progress:
            gone = forget.forget(store, applications, asked, event or (), file or (), progress)
        postgres = store.engine.dialect.name == "postgresql"
    typer.echo(f"{gone.decisions:,} decisions erased")
    for path, rows in gone.files.items():
        typer.echo(f"{rows:,} rows erased from {path}")
    for path in gone.missing:
        typer.echo(f"no longer found, so not checked: {path}; if it was moved, pass --file PATH", err=True)
    if postgres:
        typer.echo("PostgreSQL keeps the deleted bytes on disk until you run VACUUM FULL decisions", err=True)


def retain(
    app: Annotated[str | None, typer.Option("--app", help="Limit to this application. [default: all]")] = None,
    days: Annotated[
        int | None, typer.Option(min=0, help="Days to keep. [default: the setting `logRetentionDays`]")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(help="Folder for a Parquet copy of the deleted rows, with rewards.")
    ] = None,
    database: Database = None,
) -> None:
    """Delete events older than `logRetentionDays` now. The trainer does this every minute, without --archive."""
    with opened(database) as store:
        from o2pl.serving import retention

        for each in [store.application(app)] if app is not None else store.applications():
            gone = retention.delete_old(store, each, time.time(), days, archive)
            span = each.settings.log_retention_days if days is None else days
            kept = "kept forever" if span < 0 else f"kept {span} days"
            typer.echo(f"{each.name}: {kept}; {gone.decisions:,} decisions and {gone.models:,} models deleted")
            if gone.archive is not None:
                typer.echo(f"their log: {gone.archive}")


@contextmanager
def _counting(what: str) -> Iterator[Callable[[int], None]]:
    """Show a counter, if the output is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    yield lambda done: typer.echo(f"\r{done:,} {what}", err=True, nl=False)
    typer.echo("\r\033[K", err=True, nl=False)
