"""`o2pl join`: decisions and their rewards, a log."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.logs import say_bad_log_rows

EXAMPLES = (
    "`o2pl join tonight.parquet bought.csv --reward amount --several sum --default 0 --out log.parquet`; then"
    " `o2pl fit log.parquet --out model.o2pl`."
)


class Several(StrEnum):
    """What counts if a decision has several rewards."""

    refuse = "refuse"
    sum = "sum"
    max = "max"


def join(
    decisions: Annotated[Path, typer.Argument(help="What `o2pl decide` wrote, or a folder of such Parquet files.")],
    rewards: Annotated[Path, typer.Argument(help="Parquet, Arrow or CSV: ids of decisions, and their rewards.")],
    out: Annotated[Path, typer.Option(help="The log: `.parquet`, `.arrow` or `.csv`.")],
    id_column: Annotated[str, typer.Option("--id", help="Column of REWARDS with the decision's id.")] = "event_id",
    reward: Annotated[str, typer.Option(help="Column of REWARDS with the reward.")] = "reward",
    default: Annotated[
        float | None, typer.Option(help="Reward of decisions that have none. [default: such decisions are left out]")
    ] = None,
    several: Annotated[Several, typer.Option(help="If a decision has several rewards.")] = Several.refuse,
) -> None:
    """Join decisions with their rewards, by id: a log for `o2pl fit` and `o2pl evaluate`.

    Join when the wait is over for all decisions. If those with a reward come first and the others later, what is
    learned in between is biased.
    """
    from o2pl.formats.batches import joined_batches
    from o2pl.formats.files import kind_of_file, kind_of_file_to_write, read_file_table, write_file_tables
    from o2pl.formats.log_tables import bad_rows_of_log_table

    kind_of_file_to_write(out)
    tables = []
    for path in (decisions, rewards):
        bad = bad_rows_of_log_table(path, kind_of_file(path), 0)
        tables.append(read_file_table(path, bad))
        say_bad_log_rows(bad)
    found = joined_batches(
        tables[0], tables[1], (decisions.name, rewards.name), id_column, reward, default, several.value
    )  # fmt: skip
    rows = write_file_tables(out, iter([found.table]))
    without = f"{found.untold:,} without one " + ("are left out" if default is None else f"got {default:g}")
    typer.echo(f"{found.told:,} decisions have a reward; {without}")
    if found.others:
        typer.echo(f"note: {found.others:,} rewards are of other decisions", err=True)
    typer.echo(f"{rows:,} rows: {out}")
    typer.echo(f"next: o2pl fit {out} --out new.o2pl")
