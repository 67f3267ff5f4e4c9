"""`o2pl describe`."""

from __future__ import annotations

from typing import Annotated

import typer

from o2pl.cli.logs import read_log_and_say
from o2pl.cli.options import Log, Map, SkipBad, range_option

EXAMPLES = "`o2pl describe log.parquet` also suggests the next command."


def describe(
    log: Log,
    rewards: Annotated[str | None, typer.Option(help="Lowest and highest possible reward, such as `0,1`.")] = None,
    skip_bad: SkipBad = 0,
    mapping: Map = None,
) -> None:
    """Describe a log: its columns, whether its propensities are calibrated, drift, and what to do next."""
    from o2pl.formats import describing

    ends = None if rewards is None else range_option(rewards)
    found = read_log_and_say(log, ends, skip_bad, need_propensities=False, mapping=mapping)
    typer.echo(str(describing.describe(found, str(log))))
