"""`o2pl app`, `o2pl backup`, `o2pl export`, `o2pl forget`, `o2pl retain`: what is done to the store by hand."""

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
    """The store that a command works on; new: it may be made."""
    require_extra("serve", "the decision service")
    from o2pl.serving.database import where_is
    from o2pl.serving.store import Store

    where = where_is(database)
    if not new and "://" not in str(where) and not Path(where).exists():
        raise InvalidInput(f"database: found no file {str(where)!r}, expected one that `o2pl serve` has made")
    with Store.open(where) as store:
        yield store


def chosen(store: Store, name: str | None) -> Application:
    """The application of this name, or the only one."""
    if name is not None:
        return store.application(name)
    found = store.applications()
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        raise InvalidInput(f"app: found {len(found)} applications ({names}), expected one; choose with --app NAME")
    return found[0]


# -- applications


def add(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    kind: Annotated[
        str,
        typer.Option(help="`ranked`: each call brings its actions. `fixed`: --actions. `continuous`: --bounds."),
    ] = "ranked",
    actions: Annotated[str | None, typer.Option(help="Comma-separated names, of the kind `fixed`.")] = None,
    bounds: Annotated[
        str | None, typer.Option(help="The lowest and highest action, such as `0,10`, of the kind `continuous`.")
    ] = None,
    rewards: Annotated[str, typer.Option(help="The lowest and highest reward there can be.")] = "0,1",
    database: Database = None,
) -> None:
    """Add an application: its own learner, settings, keys and log. Prints its two keys, once."""
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
    typer.echo("The keys are not stored: keep them now. `o2pl app key` makes others.", err=True)


def _two_numbers(name: str, text: str) -> list[float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"{name}: found {text!r}, expected two numbers, such as 0,1") from None
    return [low, high]


def list_applications(database: Database = None) -> None:
    """Show the applications, their kinds, and how many decisions they have."""
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
    name: Annotated[str, typer.Argument(help="Of which application.")],
    role: Annotated[str, typer.Option(help="`write`: rank, reward, set. `read`: the page and exports.")] = "write",
    replace: Annotated[bool, typer.Option("--replace", help="The older keys of this role are valid no more.")] = False,
    database: Database = None,
) -> None:
    """Make another key, and print it, once."""
    with opened(database) as store:
        from o2pl.serving import applications

        application = store.application(name)
        with store.writing() as connection:
            key = applications.add_key(connection, application.id, role)
            gone = applications.delete_keys(connection, application.id, role, but=key) if replace else 0
    typer.echo(key)
    if replace:
        typer.echo(f"{gone} older keys deleted; servers notice within seconds", err=True)


# -- the log


def back_up(
    out: Annotated[Path, typer.Argument(help="A new file, such as `backup.sqlite`.")], database: Database = None
) -> None:
    """Copy the SQLite database while it is in use. Of PostgreSQL: `pg_dump`.

    OUT appears when it is whole. To go back to it, stop the service and put it in the place of the database.
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
    """Write the joined log: every decision with its reward, at any time. The ending of OUT says the format."""
    with opened(database) as store:
        from o2pl.serving import export
        from o2pl.serving.joining import join

        application = chosen(store, app)
        join(store, application, time.time())  # a trainer may be behind, or there may be none
        with _counting("rows") as progress:
            rows = export.export(store, application, out, progress)
        waiting = store.count_decisions(application.id) - rows
    typer.echo(f"{rows:,} rows: {out}")
    if waiting > 0:
        typer.echo(f"{waiting:,} decisions have no outcome yet, and are not in it", err=True)
    typer.echo(f"to look at it: o2pl describe {out}", err=True)


def forget_person(
    where: Annotated[
        str | None, typer.Option(help="A feature and its value, such as `user.id=17`: events whose context has it.")
    ] = None,
    event: Annotated[list[str] | None, typer.Option(help="The id of an event; may be given several times.")] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(help="An exported log that lies elsewhere now; may be given several times."),
    ] = None,
    app: Annotated[str | None, typer.Option("--app", help="Only of this application. [default: of all]")] = None,
    database: Database = None,
) -> None:
    """Erase events of a person: from the database, from exported files, and from what is learned.

    The trainer learns anew from what is left. Backups that were made before still have the events.
    """
    if where is None and not event:
        raise InvalidInput("forget: found neither --where nor --event, expected what to erase")
    with opened(database) as store:
        from o2pl.serving import forget

        asked = None if where is None else forget.Where.parsed(where)
        applications = [store.application(app)] if app is not None else store.applications()
        with _counting("events looked at") as progress:
            gone = forget.forget(store, applications, asked, event or (), file or (), progress)
        postgres = store.engine.dialect.name == "postgresql"
    typer.echo(f"{gone.decisions:,} decisions erased")
    for path, rows in gone.files.items():
        typer.echo(f"{rows:,} rows erased from {path}")
    for path in gone.missing:
        typer.echo(f"not found any more, so not looked at: {path}; if it was moved: --file PATH", err=True)
    if postgres:
        typer.echo("PostgreSQL keeps the bytes of deleted rows until VACUUM FULL decisions", err=True)


def retain(
    app: Annotated[str | None, typer.Option("--app", help="Only of this application. [default: of all]")] = None,
    days: Annotated[
        int | None, typer.Option(min=0, help="Keep so many days. [default: `logRetentionDays` of the settings]")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(help="A folder that gets the joined log of what goes, as Parquet.")
    ] = None,
    database: Database = None,
) -> None:
    """Delete what is older than `logRetentionDays`, now. The trainer does the same every minute, without --archive."""
    with opened(database) as store:
        from o2pl.serving import retention

        for each in [store.application(app)] if app is not None else store.applications():
            gone = retention.delete_old(store, each, time.time(), days, archive)
            span = each.settings.log_retention_days if days is None else days
            kept = "kept for ever" if span < 0 else f"kept {span} days"
            typer.echo(f"{each.name}: {kept}; {gone.decisions:,} decisions and {gone.models:,} models deleted")
            if gone.archive is not None:
                typer.echo(f"their log: {gone.archive}")


@contextmanager
def _counting(what: str) -> Iterator[Callable[[int], None]]:
    """A line that counts, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    yield lambda done: typer.echo(f"\r{done:,} {what}", err=True, nl=False)
    typer.echo("\r\033[K", err=True, nl=False)
