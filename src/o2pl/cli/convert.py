"""`o2pl convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.logs import say_bad_log_rows
from o2pl.cli.options import Log, Map, SkipBad, list_option

EXAMPLES = "`o2pl convert vw.dsjson log.parquet`; `o2pl convert log.parquet vw2.dsjson` (VW learns the same from both)."


def convert(
    log: Log,
    out: Annotated[Path, typer.Argument(help="`.parquet`, `.arrow`, `.csv`, `.dsjson` or `.vw` (VW's text).")],
    columns: Annotated[
        str | None,
        typer.Option(help="Column names in LOG, such as `action=item_id,reward=click,propensity=pscore`."),
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Comma-separated columns to leave out.")] = None,
    skip_bad: SkipBad = 0,
    mapping: Map = None,
) -> None:
    """Convert a log to another format, given by the file extension of OUT.

    OUT appears only when it is complete. VW reads the converted file as it reads the original dsjson or text, also
    after a conversion to Parquet and back.
    """
    from o2pl.formats.files import kind_of_file, kind_of_file_to_write, read_file_tables, write_file_tables
    from o2pl.formats.json_columns import renamed_columns_of, table_of_number_columns, with_renamed_columns
    from o2pl.formats.log_tables import bad_rows_of_log_table, read_log
    from o2pl.formats.mapping import mapping_of

    kind_of_file_to_write(out)  # before anything is read
    kind, asked = kind_of_file(log), None if mapping is None else mapping_of(mapping)
    bad = bad_rows_of_log_table(log, kind, skip_bad)
    tables = (
        iter([table_of_number_columns(read_log(log))])
        if kind == "learner"
        else read_file_tables(log, bad, mapping=asked)
    )
    if columns is not None or drop is not None:
        tables = with_renamed_columns(tables, renamed_columns_of(columns or ""), list_option(drop or ""), log.name)
    rows = write_file_tables(out, tables)
    say_bad_log_rows(bad)
    typer.echo(f"{rows:,} rows: {out}")
