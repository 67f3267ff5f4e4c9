"""Render a `Fit` as a table, as text and as a figure."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from o2pl.drawing import new_figure, tidy
from o2pl.evaluation.judgement import judgement_advice
from o2pl.fitting.choice import Fit
from o2pl.learners.improvement_candidates import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from o2pl.fitting.improving import Improved

_BLUE, _GREY, _RED = "#0072B2", "#6e6e6e", "#D55E00"


def fit_table(found: Fit) -> Table:
    """Return a rich table of all candidates, the chosen one first."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("candidate", no_wrap=True)
    for heading in ("estimate", "from", "to", "gain", "at least", "eff. rows"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found.candidates:
        numbers = [f"{number:.4f}" for number in (one.value, one.low, one.high, one.gain, one.gain_low)]
        table.add_row(one.name, *numbers, f"{one.effective:,.0f}", style="bold" if one is found.chosen else "")
    table.add_row("logging policy", f"{found.logged:.4f}", "", "", "", "", f"{found.held_out:,}")
    return table


def fit_improvement_table(verdicts: Sequence[Verdict], chosen: Verdict) -> Table:
    """Return a rich table of the candidates of safe improvement."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("candidate")
    for heading in ("over the incumbent", "at least", "deploy"):
        table.add_column(heading, justify="right")
    for one in verdicts:
        cells = (f"{one.gain:+.4f}", f"{one.lower:+.4f}", "yes" if one.deploy else "no")
        table.add_row(f"o2pl λ={one.penalty:g}", *cells, style="bold" if one is chosen else "")
    return table


def fit_improvement_lines(found: Improved) -> list[str]:
    """Return the lines below the table of safe improvement."""
    verdict = found.learner.improvement_
    saved = "The saved model is the incumbent" if found.kept_incumbent else "The saved model acts like it"
    said = judgement_advice(verdict.said, verdict.lower if verdict.deploy else None, saved)
    return [f"{len(found.log):,} rows, mean reward {found.log.rewards.mean():.4f}", f"verdict: {said}"]


def fit_lines(found: Fit) -> list[str]:
    """Return the lines below the table."""
    compared = "" if found.sample is None else f"; compared on a sample of {found.sample:,}"
    return [
        f"{found.rows:,} rows{compared}, of which {found.held_out:,} were held out; the intervals hold jointly with"
        f" {1 - found.delta:.0%} confidence",
        "gain: over the logging policy; eff. rows: effective sample size",
        f"chosen: {found.chosen.name}, which has the highest pessimistic value; trained on all rows",
        f"verdict: {found.verdict}",
        *(f"warning: {warning}" for warning in found.warnings),
    ]


def fit_text(found: Fit) -> str:
    from rich.console import Console

    written = io.StringIO()
    Console(file=written, width=110, color_system=None).print(fit_table(found))
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    return "\n".join([*lines, "", *fit_lines(found)])


def draw_fit(found: Fit) -> Figure:
    """Draw the candidates with their intervals, sorted by pessimistic value."""
    figure = new_figure(8.5, 1.4 + 0.32 * len(found.candidates))
    axes = figure.subplots()
    for place, one in enumerate(found.candidates):
        colour = _BLUE if one is found.chosen else _GREY
        axes.plot([one.low, one.high], [place, place], color=colour, linewidth=2)
        axes.plot(one.low, place, marker="|", markersize=9, color=colour)
        axes.plot(one.value, place, marker="o", color=colour)
    axes.axvline(found.logged, color=_RED, linestyle="--", linewidth=1.2, label="logging policy")
    axes.set_yticks(range(len(found.candidates)), [one.name for one in found.candidates])
    axes.invert_yaxis()
    axes.set_xlabel(f"mean reward on held-out rows, {1 - found.delta:.0%} joint confidence intervals")
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    tidy(axes, "x")
    return figure
