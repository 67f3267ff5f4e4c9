"""`o2pl export`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.database import chosen, opened_database
from o2pl.cli.options import App, Database
from o2pl.cli.progress import counted_progress

EXAMPLES = "`o2pl export log.parquet`, then `o2pl describe log.parquet`."


def export_log(
    out: Annotated[Path, typer.Argument(help="`.parquet`, `.arrow`, `.csv`, `.dsjson` or `.vw` (VW's text).")],
    app: App = None,
    database: Database = None,
) -> None:
    """Export the joined log: each decision with its reward. The file extension of OUT sets the format."""
    with opened_database(database) as store:
        from o2pl.serving import export
        from o2pl.serving.reward_join import join

        application = chosen(store, app)
        join(store, application, time.time())  # the trainer may be behind or not running
        with counted_progress("rows") as progress:
            rows = export.export(store, application, out, progress)
        waiting = store.count_decisions(application.id) - rows
    typer.echo(f"{rows:,} rows: {out}")
    if waiting > 0:
        typer.echo(f"{waiting:,} decisions have no outcome yet and are not exported", err=True)
    typer.echo(f"to inspect it: o2pl describe {out}", err=True)
