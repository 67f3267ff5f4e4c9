"""Read the log of a command, and say which rows were skipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from o2pl.data.interactions import Interactions
    from o2pl.formats.bad_rows import BadRows
    from o2pl.validation import RewardRange

_SHOWN = 20  # messages of skipped rows


def read_log_and_say(
    log: Path, ends: RewardRange | None, skip_bad: int, *, need_propensities: bool = True, mapping: str | None = None
) -> Interactions:
    """Read the log, and print the rows that were skipped."""
    from o2pl.formats.files import kind_of_file
    from o2pl.formats.log_tables import bad_rows_of_log_table, read_log

    bad = bad_rows_of_log_table(log, kind_of_file(log), skip_bad)
    found = read_log(log, reward_range=ends, skip_bad=bad, need_propensities=need_propensities, mapping=mapping)
    say_bad_log_rows(bad)
    return found


def say_bad_log_rows(bad: BadRows) -> None:
    for text in bad.notes:
        typer.echo(f"note: {text}", err=True)
    for message in bad.found[:_SHOWN]:
        typer.echo(f"skipped: {message}", err=True)
    if len(bad.found) > _SHOWN:
        typer.echo(f"skipped: {len(bad.found) - _SHOWN} more", err=True)
