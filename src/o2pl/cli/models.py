"""`o2pl models`: manage the model versions of an application."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from o2pl.cli.database import chosen, opened_database
from o2pl.cli.options import App, Database
from o2pl.errors import InvalidInput

if TYPE_CHECKING:
    from o2pl.serving.applications import Application
    from o2pl.serving.imported_learners import Prepared

HELP = "Manage the model versions of the decision service."
Version = Annotated[int, typer.Argument(min=0, help="Version number from `o2pl models list`. 0: uniform decisions.")]


def list_models(
    application: App = None,
    database: Database = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of versions to show, newest first.")] = 20,
) -> None:
    """List the newest versions: creation time, outcomes learned from, and which one is served."""
    from rich.console import Console
    from rich.table import Table

    with opened_database(database) as store:
        own = chosen(store, application)
        rows, served = store.model_versions(own.id, limit), store.served_version(own.id)
        sizes = {row.version: len(store.model_body(own.id, row.version)) for row in rows}
    table = Table(title=f"Models of {own.name}", title_justify="left")
    for column in ("version", "made (UTC)", "outcomes", "bytes", "state"):
        table.add_column(column, justify="left" if column in ("made (UTC)", "state") else "right")
    for row in rows:
        state = "served" if row.version == served else ""
        state += ", pinned" if row.version == own.pinned else ""
        state = f"withdrawn: {row.withdrawn}" if row.withdrawn else state
        made = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row.created_at))
        table.add_row(str(row.version), made, f"{row.rows:,}", f"{sizes[row.version]:,}", state)
    Console().print(table)
    if not served:
        typer.echo("served: uniform decisions")


def pin_model(version: Version, application: App = None, database: Database = None) -> None:
    """Serve this version until `o2pl models unpin`, even if newer versions are published."""
    with opened_database(database) as store:
        own = chosen(store, application)
        store.pin(own.id, version)
    typer.echo(f"version {version} of {own.name} is served until `o2pl models unpin`")


def unpin_model(application: App = None, database: Database = None) -> None:
    """Serve the newest version that is not withdrawn."""
    with opened_database(database) as store:
        own = chosen(store, application)
        store.pin(own.id, None)
        served = store.served_version(own.id)
    typer.echo(f"version {served} of {own.name} is served; newer versions replace it when they are published")


def roll_back_models(
    application: App = None,
    database: Database = None,
    to: Annotated[int | None, typer.Option(min=0, help="Version to serve. [default: the previous one]")] = None,
    why: Annotated[str, typer.Option(help="Reason, stored with the withdrawn versions.")] = "rolled back by hand",
) -> None:
    """Roll back to an earlier version: withdraw all later versions and pin the earlier one."""
    from o2pl.serving import versions

    with opened_database(database) as store, store.writing() as connection:
        own = chosen(store, application)
        target, gone = versions.roll_back(connection, own.id, to, why)
    typer.echo(
        f"version {target or '0 (uniform decisions)'} of {own.name} is served until `o2pl models unpin`;"
        f" withdrawn: {', '.join(map(str, gone))}"
    )


def export_model(
    version: Version,
    out: Annotated[Path, typer.Argument(help="Output file. `o2pl.load` and `o2pl explain` read it.")],
    application: App = None,
    database: Database = None,
) -> None:
    """Export a version to a file: a published policy, without any contexts."""
    with opened_database(database) as store:
        own = chosen(store, application)
        body = store.model_body(own.id, version)
    out.write_bytes(body)
    typer.echo(str(out))


def import_model(
    model: Annotated[Path, typer.Argument(help="A saved learner, a log, or a published policy.")],
    application: App = None,
    database: Database = None,
    pinned: Annotated[
        bool | None,
        typer.Option(
            "--pin/--no-pin",
            help="Serve it until `o2pl models unpin`. [default: --no-pin for a learner or a log, which learning goes on"
            " from; --pin for a policy, which the trainer cannot learn on with]",
        ),
    ] = None,
) -> None:
    """Publish a model from a file as the newest version, and go on learning from it.

    Learning goes on from a learner, or from what the application's own learner learns from a log; rewards that come
    from now on are added. What was learned before is not used any more. A policy without its log is only served.
    """
    from o2pl.serving import imported_learners

    with opened_database(database) as store:
        own = chosen(store, application)
        found = _prepared(own, model)
        pins = found.learner is None if pinned is None else pinned
        with store.writing() as connection:
            version = imported_learners.put(connection, own.id, found, pins)
    typer.echo(f"version {version} of {own.name} is {'pinned' if pins else 'published'}")
    if found.learner is not None:
        typer.echo(f"learning goes on from its {found.rows:,} rows, with the rewards that come from now on")
    elif not pins:
        typer.echo(
            "it is served until the trainer publishes its next version, which knows nothing of it: a policy has no log"
            " to go on from", err=True,
        )  # fmt: skip


def _prepared(application: Application, path: Path) -> Prepared:
    from o2pl.cli.logs import read_log_and_say
    from o2pl.formats.files import kind_of_file
    from o2pl.learners import load
    from o2pl.serving import imported_learners

    if not path.exists():
        raise InvalidInput(f"model: found no file {str(path)!r}, expected a saved learner, a log or a published policy")
    if kind_of_file(path) == "learner":
        return imported_learners.of_file(application, load(path), path.read_bytes())
    return imported_learners.of_log(application, read_log_and_say(path, application.settings.reward_range, 0))


def rebuild_model(version: Version, application: App = None, database: Database = None) -> None:
    """Learn a version again from the stored events, in the same batches, and compare it with the stored one."""
    from o2pl.serving.training import rebuilt

    with opened_database(database) as store:
        own = chosen(store, application)
        body, rows = rebuilt(store, own, version)
        same = body == store.model_body(own.id, version)
    if not same:
        raise InvalidInput(f"model: version {version}, learned again from {rows:,} events, differs from the stored one")
    typer.echo(f"version {version} of {own.name}, learned again from {rows:,} events, is identical to the stored one")


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_models,
    "roll-back": roll_back_models,
    "pin": pin_model,
    "unpin": unpin_model,
    "export": export_model,
    "import": import_model,
    "rebuild": rebuild_model,
}
