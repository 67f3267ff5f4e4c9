"""`o2pl decide`: many decisions at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from o2pl.cli.logs import say_bad_log_rows
from o2pl.cli.options import SkipBad, list_option
from o2pl.errors import InvalidInput

EXAMPLES = (
    "`o2pl decide model.o2pl customers.parquet --out tonight.parquet`; then"
    " `o2pl join tonight.parquet bought.csv --default 0 --out log.parquet`."
)


def decide(
    model: Annotated[Path, typer.Argument(help="A saved learner or policy. It is not changed.")],
    contexts: Annotated[Path, typer.Argument(help="Parquet, Arrow or CSV, one row per decision.")],
    out: Annotated[Path, typer.Option(help="`.parquet`, `.arrow` or `.csv`: CONTEXTS with id, action and propensity.")],
    context: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated feature columns. [default: those that the model learned from, if they have names;"
            " else all]"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the draws. [default: another one each time]")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace OUT if it exists.")] = False,
    skip_bad: SkipBad = 0,
) -> None:
    """Decide for every row of a file: a nightly job in one call.

    OUT has all columns of CONTEXTS, and `event_id`, `action` and `propensity`: what was decided, with the probability
    of the draw. Keep it: `o2pl join` adds the rewards and makes it a log to learn from. An OUT that exists is not
    replaced unless you say so: decisions that were carried out would be lost.
    """
    from o2pl.formats.batches import decided_batch
    from o2pl.formats.files import kind_of_file, kind_of_file_to_write, read_file_table, write_file_tables
    from o2pl.formats.log_tables import bad_rows_of_log_table
    from o2pl.learners.base import load

    if kind_of_file_to_write(out) not in ("parquet", "arrow", "csv"):
        raise InvalidInput(f"out: found {out.name!r}, expected a name that ends in .parquet, .arrow or .csv")
    if out.exists() and not replace:
        raise InvalidInput(f"out: found {str(out)!r}, expected a new name: its decisions would be lost; or --replace")
    policy, kind = load(model), kind_of_file(contexts)
    if kind not in ("parquet", "arrow", "csv"):
        raise InvalidInput(f"{contexts.name}: found {kind}, expected Parquet, Arrow or CSV")
    decider = policy.snapshot() if hasattr(policy, "snapshot") else policy
    bad = bad_rows_of_log_table(contexts, kind, skip_bad)
    columns = None if context is None else list_option(context)
    made = decided_batch(decider, read_file_table(contexts, bad), bad, columns, seed)
    write_file_tables(out, iter([made]))
    say_bad_log_rows(bad)
    typer.echo(f"{len(made):,} decisions: {out}")
    typer.echo(f"next: o2pl join {out} REWARDS --default 0 --out log.parquet")
