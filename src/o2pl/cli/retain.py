"""`o2pl retain`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.database import asked_of_database, opened_database
from o2pl.cli.options import Database

EXAMPLES = "`o2pl retain --days 90 --archive old`."


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
    with opened_database(database) as store:
        from o2pl.serving import retention

        for each in asked_of_database(store, app):
            gone = retention.delete_old(store, each, time.time(), days, archive)
            span = each.settings.log_retention_days if days is None else days
            kept = "kept forever" if span < 0 else f"kept {span} days"
            typer.echo(f"{each.name}: {kept}; {gone.decisions:,} decisions and {gone.models:,} models deleted")
            if gone.archive is not None:
                typer.echo(f"their log: {gone.archive}")
