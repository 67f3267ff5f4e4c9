"""`o2pl train`: run the trainer as a separate process."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from o2pl.errors import InvalidInput
from o2pl.extras import require_extra

DATABASE = "A SQLite file, or `postgresql://…`. [default: O2PL_DATABASE, or o2pl.sqlite]"


def train(
    database: Annotated[str | None, typer.Option(help=DATABASE)] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Run until stopped. Otherwise learn from the stored rows and exit.")
    ] = False,
    guard: Annotated[
        bool,
        typer.Option("--guard", help="Roll back a model that is worse than the baseline, with confidence."),
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints, to resume after a stop. [default: next to the SQLite file]"),
    ] = None,
) -> None:
    """Join rewards to decisions, learn from them, and publish models for the servers.

    One trainer at a time works on a database; others wait and take over when it ends. `o2pl serve` starts one.
    """
    require_extra("serve", "the trainer")
    from o2pl.serving.database import StoreUnavailable
    from o2pl.serving.election import Election
    from o2pl.serving.logs import log_to_stderr
    from o2pl.serving.trainer import Trainer

    if follow:
        log_to_stderr()
    store, place = open_store(database)
    folder = state
    if folder is None and store.engine.dialect.name == "sqlite":
        folder = Path(f"{place}.trainer")
    trainer = Trainer(store, folder, guard)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if follow:
        trainer.run(stop)
        return
    election = Election(store)
    try:
        if not election.held():
            raise InvalidInput("train: another process is training on this database; stop it, or let it finish")
        made, rows, before = trainer.step(last=True), trainer.rows, -1
        while rows > before:  # until no new rows are left
            before = rows
            made, rows = made + trainer.step(last=True), trainer.rows
    except StoreUnavailable as error:
        raise InvalidInput(f"database: cannot be opened ({error})") from None
    finally:
        election.give_up()
    typer.echo(f"learned from {rows} outcomes; {made} model{'s' if made != 1 else ''} published")


def open_store(database: str | None) -> tuple[Any, str]:
    """Return the opened store and its URL."""
    from o2pl.serving.database import StoreUnavailable, where_is
    from o2pl.serving.store import Store

    place = str(where_is(database))
    try:
        return Store.open(place), place
    except StoreUnavailable as error:
        raise InvalidInput(f"database: cannot be opened ({error})") from None
