"""`o2pl convert` and `o2pl describe`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from o2pl.data.interactions import Interactions
    from o2pl.formats.bad import BadRows
    from o2pl.validation import RewardRange

LOG_HELP = (
    "Parquet (a file or a folder), Arrow or CSV with columns `action`, `reward`, `propensity` and the context;"
    " VW's dsjson or text; or a saved learner."
)
Log = Annotated[Path, typer.Argument(help=LOG_HELP)]
SkipBad = Annotated[int, typer.Option(min=0, help="Skip up to this many unreadable rows, and report them.")]


def convert(
    log: Log,
    out: Annotated[Path, typer.Argument(help="`.parquet`, `.arrow`, `.csv`, `.dsjson` or `.vw` (VW's text).")],
    columns: Annotated[
        str | None,
        typer.Option(help="Column names in LOG, such as `action=item_id,reward=click,propensity=pscore`."),
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Comma-separated columns to leave out.")] = None,
    skip_bad: SkipBad = 0,
) -> None:
    """Convert a log to another format, given by the file extension of OUT.

    OUT appears only when it is complete. VW reads the converted file as it reads the original dsjson or text, also
    after a conversion to Parquet and back.
    """
    from o2pl.formats.columns import bad_rows_of, read_log
    from o2pl.formats.files import kind_of_file, kind_of_suffix, read_tables, write_tables
    from o2pl.formats.nested import numbers_table, pairs_of, renamed

    kind_of_suffix(out)  # before anything is read
    kind = kind_of_file(log)
    bad = bad_rows_of(log, kind, skip_bad)
    tables = iter([numbers_table(read_log(log))]) if kind == "learner" else read_tables(log, bad)
    if columns is not None or drop is not None:
        tables = renamed(tables, pairs_of(columns or ""), [name for name in (drop or "").split(",") if name], log.name)
    rows = write_tables(out, tables)
    say_bad(bad)
    typer.echo(f"{rows:,} rows: {out}")


def describe_log(
    log: Log,
    rewards: Annotated[str | None, typer.Option(help="Lowest and highest possible reward, such as `0,1`.")] = None,
    skip_bad: SkipBad = 0,
) -> None:
    """Describe a log: its columns, whether its propensities are calibrated, drift, and what to do next."""
    from o2pl.evaluation.command import reward_range
    from o2pl.formats.describing import describe

    ends = None if rewards is None else reward_range(rewards)
    found = read_and_say(log, ends, skip_bad, need_propensities=False)
    typer.echo(str(describe(found, str(log))))


def read_and_say(log: Path, ends: RewardRange | None, skip_bad: int, *, need_propensities: bool = True) -> Interactions:
    """Read the log, and print the rows that were skipped."""
    from o2pl.formats.columns import bad_rows_of, read_log
    from o2pl.formats.files import kind_of_file

    bad = bad_rows_of(log, kind_of_file(log), skip_bad)
    found = read_log(log, reward_range=ends, skip_bad=bad, need_propensities=need_propensities)
    say_bad(bad)
    return found


def say_bad(bad: BadRows) -> None:
    for message in bad.found[:20]:
        typer.echo(f"skipped: {message}", err=True)
    if len(bad.found) > 20:
        typer.echo(f"skipped: {len(bad.found) - 20} more", err=True)
