"""`o2pl evaluate`, of a log in memory or larger than that."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2pl.cli.logs import read_log_and_say, say_bad_log_rows
from o2pl.cli.options import (
    Address,
    EngineName,
    Log,
    Map,
    Memory,
    OutOfCore,
    SkipBad,
    Workers,
    policy_option,
    range_option,
)
from o2pl.errors import InvalidInput
from o2pl.extras import extra_install_command, missing_extra, require_extra

if TYPE_CHECKING:
    from o2pl.evaluation.candidates import Candidates
    from o2pl.evaluation.results import Evaluation
    from o2pl.validation import RewardRange

EXAMPLES = """
Example:

`o2pl evaluate log.parquet --policy model.o2pl --baseline logged --rewards 0,1` compares a saved learner with the
policy that made the log.

`o2pl evaluate log.parquet --policy a.o2pl --policy b.o2pl --policy logged --rewards 0,1` says which is best, which are
worse with confidence, and how many more rows are needed to decide.
"""


def evaluate(
    log: Log,
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
    skip_bad: SkipBad = 0,
    mapping: Map = None,
    out_of_core: OutOfCore = None,
    memory: Memory = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Estimate what a policy would have earned on a log, with confidence intervals, warnings and a figure."""
    from o2pl.evaluation.evaluate import evaluate as evaluated
    from o2pl.evaluation.metrics import metrics_of
    from o2pl.fitting.fit_out_of_core import is_out_of_core

    group = control is not None or baseline == "control"
    ends = None if rewards is None else range_option(rewards)
    if is_out_of_core(log, out_of_core, memory, engine, workers, address):
        in_memory = at_any_time or segments is not None or rows_per_day is not None or propensities != "auto"
        if in_memory or metric or group or truncate:
            raise InvalidInput(
                "--at-any-time, --segments, --rows-per-day, --propensities, --metric, --truncate or a control group:"
                " found with a log larger than memory, expected --in-memory as well"
            )
        _show_evaluation(
            _evaluate_out_of_core(log, policy, baseline, ends, delta, skip_bad, engine, workers, address), figure
        )
        return
    rows = read_log_and_say(log, ends, skip_bad, need_propensities=False, mapping=mapping)
    metrics = metrics_of(metric or (), fewer_is_better or (), at_most_worse or ()) or None
    within = None if truncate is None else range_option(truncate, "truncate")
    if metrics and figure is not None:
        raise InvalidInput("--figure: found with --metric, which has none; expected one of them")
    if figure is not None:
        require_extra("plots", "drawing figures")
    against = baseline if baseline in (None, "control") else policy_option(baseline, "baseline")
    policies = {name: policy_option(name) for name in policy}
    asked: Any = policies if len(policies) > 1 else next(iter(policies.values()))
    settings: Any = {"at_any_time": at_any_time, "delta": delta, "propensities": propensities, "metrics": metrics}
    settings |= {"segments": segments, "rows_per_day": rows_per_day, "truncate": within}
    settings |= {"control": control, "control_share": control_share}
    found: Any = evaluated(rows, asked, baseline=against, **settings)
    if metrics:
        _print_evaluation(str(found))
        return
    _show_evaluation(found, figure)


def _evaluate_out_of_core(
    log: Path, policies: list[str], baseline: str | None, ends: RewardRange | None, delta: float, skip_bad: int,
    engine: str, workers: int | None, address: str | None,
) -> Evaluation:  # fmt: skip
    """Evaluate one policy out of core, with the options of `o2pl evaluate`."""
    from o2pl.cli.progress import shown_progress
    from o2pl.cluster import connected_cluster
    from o2pl.fitting.evaluate_out_of_core import evaluate_on_ray, evaluate_out_of_core
    from o2pl.formats.log_tables import bad_rows_of_log_table

    if len(policies) > 1:
        raise InvalidInput(f"policy: found {len(policies)} for a log larger than memory, expected one; or --in-memory")
    against = None if baseline is None else policy_option(baseline, "baseline")
    bad = bad_rows_of_log_table(log, "parquet", skip_bad)
    with ExitStack() as stack:
        progress = stack.enter_context(shown_progress("evaluate"))
        spread = evaluate_on_ray(stack.enter_context(connected_cluster(address, workers))) if engine == "ray" else None
        found = evaluate_out_of_core(
            log, policy_option(policies[0]), against, reward_range=ends, delta=delta, bad=bad, read=progress.read,
            spread=spread,
        )  # fmt: skip
    say_bad_log_rows(bad)
    return found


def _show_evaluation(found: Evaluation | Candidates, figure: Path | None) -> None:
    """Print the result and draw it. figure=None: `evaluation.png`, or nothing if plotting is not available."""
    from rich.console import Console

    from o2pl.evaluation import candidates_report
    from o2pl.evaluation.candidates import Candidates
    from o2pl.evaluation.evaluation_figures import save_evaluation_figure
    from o2pl.evaluation.evaluation_report import evaluation_lines, evaluation_table

    if isinstance(found, Candidates):
        table, lines = candidates_report.candidates_table(found.overall), candidates_report.candidates_lines(found)
    else:
        table, lines = evaluation_table(found), evaluation_lines(found)
    Console().print(table)
    for line in ("", *lines):
        _print_evaluation(line)
    if figure is None and missing_extra("plots"):
        drawn = f"not drawn; to draw it: {extra_install_command('plots')}"
    else:
        drawn = str(save_evaluation_figure(found, figure or Path("evaluation.png")))
    _print_evaluation(f"figure: {drawn}")


def _print_evaluation(text: str) -> None:
    from rich.console import Console

    Console().print(text, highlight=False, markup=False)
