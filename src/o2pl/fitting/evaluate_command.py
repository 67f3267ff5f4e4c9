"""`o2pl evaluate`, of a log in memory or larger than that."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from o2pl.errors import InvalidInput
from o2pl.fitting import streamed
from o2pl.formats import command as log_commands

EXAMPLES = """
Example:

`o2pl evaluate log.parquet --policy model.o2pl --baseline logged --rewards 0,1` compares a saved learner with the
policy that made the log.

`o2pl evaluate log.parquet --policy a.o2pl --policy b.o2pl --policy logged --rewards 0,1` says which is best, which are
worse with confidence, and how many more rows are needed to decide.
"""


def evaluate_policy(
    log: log_commands.Log,
    policy: Annotated[
        list[str], typer.Option(help="A saved learner, `uniform` or `logged`. Repeat to compare several.")
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Policy to compare with: `uniform`, `logged`, a saved learner, or `control`, a control group."
        ),
    ] = None,
    at_any_time: Annotated[
        bool,
        typer.Option("--at-any-time", help="Anytime-valid confidence intervals; also valid for the log of a learner."),
    ] = False,
    delta: Annotated[
        float, typer.Option(help="Error probability: a confidence interval holds with probability 1 - delta.")
    ] = 0.05,
    rewards: Annotated[str | None, typer.Option(help="Lowest and highest possible reward, such as `0,1`.")] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Path of the figure, PNG or SVG. [default: evaluation.png]")
    ] = None,
    propensities: Annotated[
        str,
        typer.Option(
            help="`logged`; `estimated` from the contexts; `auto`: the logged ones, or estimates where they are missing"
            " or do not match the actions."
        ),
    ] = "auto",
    segments: Annotated[
        str | None,
        typer.Option(help="With several policies: a context column; results are shown for each of its values."),
    ] = None,
    rows_per_day: Annotated[
        float | None,
        typer.Option(help="With several policies: rows logged per day, to estimate the days until a decision."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="A metric to judge by: `reward`, or a column of numbers, which is then no context. Repeat."),
    ] = None,
    fewer_is_better: Annotated[
        list[str] | None, typer.Option(help="A metric of which the policy should have fewer. Repeat.")
    ] = None,
    at_most_worse: Annotated[
        list[str] | None,
        typer.Option(help="A guardrail, such as `complaints=0.01`: the policy may be worse by this much. Repeat."),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            help="With `--baseline control`: the column of 0 and 1 that says who was in it. [default: control]"
        ),
    ] = None,
    control_share: Annotated[
        float | None, typer.Option(help="Chance of being in the control group; needed with --at-any-time.")
    ] = None,
    truncate: Annotated[
        str | None, typer.Option(help="Rewards beyond these two numbers, such as `0,50`, count as the numbers.")
    ] = None,
    skip_bad: log_commands.SkipBad = 0,
    out_of_core: streamed.OutOfCore = None,
    memory: streamed.Memory = None,
    engine: streamed.EngineName = "local",
    workers: streamed.Workers = None,
    address: streamed.Address = None,
) -> None:
    """Estimate what a policy would have earned on a log, with confidence intervals, warnings and a figure."""
    from rich.console import Console

    from o2pl.evaluation import command

    group = control is not None or baseline == "control"
    ends = None if rewards is None else command.reward_range(rewards)
    if streamed.is_streamed(log, out_of_core, memory, engine, workers, address):
        if (
            at_any_time
            or segments is not None
            or rows_per_day is not None
            or propensities != "auto"
            or metric
            or group
            or truncate
        ):
            raise InvalidInput(
                "--at-any-time, --segments, --rows-per-day, --propensities, --metric, --truncate or a control group:"
                " found with a log larger than memory, expected --in-memory as well"
            )
        large = streamed.evaluate_streamed(log, policy, baseline, ends, delta, skip_bad, engine, workers, address)
        command.show(large, figure, Console())
        return
    found = log_commands.read_and_say(log, ends, skip_bad, need_propensities=False)
    measured = command.metrics_asked(metric or (), fewer_is_better or (), at_most_worse or ())
    cut = None if truncate is None else command.reward_range(truncate, "truncate")
    of_several = (segments, rows_per_day, measured, (control, control_share), cut)
    command.evaluate_files(found, policy, baseline, at_any_time, delta, figure, Console(), propensities, *of_several)
