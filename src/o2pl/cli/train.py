"""`o2pl train`."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.database import open_database_store
from o2pl.cli.settings_file import Config
from o2pl.errors import InvalidInput
from o2pl.extras import require_extra

EXAMPLES = "`o2pl train --follow --database postgresql://me@host/o2pl --guard`."
_HANGS = 75  # exit status of a trainer that hangs: `o2pl serve` starts another
DATABASE = "A SQLite file, or `postgresql://…`. [default: o2pl.sqlite]"


def train(
    database: Annotated[
        str | None, typer.Option(envvar="O2PL_DATABASE", allow_from_autoenv=False, help=DATABASE)
    ] = None,
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
    config: Config = None,
) -> None:
    """Join rewards to decisions, learn from them, and publish models for the servers.

    One trainer at a time works on a database; others wait and take over when it ends. `o2pl serve` starts one.
    """
    require_extra("serve", "the trainer")
    from o2pl.serving.database import StoreUnavailable
    from o2pl.serving.logs import log_to_stderr
    from o2pl.serving.stop_request import StopRequest
    from o2pl.serving.trainer import Trainer

    if follow:
        log_to_stderr()
    store, place = open_database_store(database)
    folder = state
    if folder is None and store.engine.dialect.name == "sqlite":
        folder = Path(f"{place}.trainer")
    trainer = Trainer(store, folder, guard, hung=lambda: os._exit(_HANGS))
    if follow:
        with StopRequest() as stop:
            stop.on(signal.SIGTERM, signal.SIGINT)
            trainer.run(stop)
        return
    try:
        made = trainer.run_once()
    except StoreUnavailable as error:
        raise InvalidInput(f"database: cannot be opened ({error})") from None
    typer.echo(f"learned from {trainer.rows} outcomes; {made} model{'s' if made != 1 else ''} published")
