"""`o2pl train`: the trainer as a process of its own."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from o2pl.errors import InvalidInput
from o2pl.extras import require_extra

DATABASE = "A SQLite file, or `postgresql://…`. [default: what O2PL_DATABASE says, or o2pl.sqlite]"


def train(
    database: Annotated[str | None, typer.Option(help=DATABASE)] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Goes on until it is stopped. Without: learns what is there, and ends.")
    ] = False,
    guard: Annotated[
        bool,
        typer.Option("--guard", help="Rolls a model back that is worse than the baseline with confidence."),
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(help="Folder of the learners' state, to go on from after a stop. [default: beside a SQLite file]"),
    ] = None,
) -> None:
    """Joins rewards to decisions, learns from them, and publishes models that servers pick up.

    One trainer works for a database; others wait, and take over when it ends. `o2pl serve` starts one.
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
            raise InvalidInput("train: found another process that trains on this database; stop it, or let it work")
        made, rows, before = trainer.step(last=True), trainer.rows, -1
        while rows > before:  # until nothing is left
            before = rows
            made, rows = made + trainer.step(last=True), trainer.rows
    except StoreUnavailable as error:
        raise InvalidInput(f"database: found one that cannot be used ({error})") from None
    finally:
        election.give_up()
    typer.echo(f"{rows} outcomes are learned from; {made} model{'s' if made != 1 else ''} published")


def open_store(database: str | None) -> tuple[Any, str]:
    """The store and where it is."""
    from o2pl.serving.database import StoreUnavailable, where_is
    from o2pl.serving.store import Store

    place = str(where_is(database))
    try:
        return Store.open(place), place
    except StoreUnavailable as error:
        raise InvalidInput(f"database: found one that cannot be used ({error})") from None
