"""`o2pl backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.database import opened
from o2pl.cli.options import Database

EXAMPLES = "`o2pl backup backup.sqlite`."


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
