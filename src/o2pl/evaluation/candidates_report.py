"""Render several candidates as a table and as a figure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from o2pl.drawing import new_figure, tidy
from o2pl.evaluation.candidates import Candidates, Contest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

BLUE, RED, GREY = "#0072B2", "#D55E00", "#6e6e6e"
_MOST = 30  # largest number of candidates in a table or a panel


def candidates_table(contest: Contest) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("policy", overflow="fold")
    for heading in ("value", "from", "to", "behind", "at least", "effective size"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in contest.candidates[:_MOST]:
        behind = ("", "") if one is contest.leader else (f"{one.gap:.4f}", f"{max(one.behind, 0):.4f}")
        numbers = f"{one.value:.4f}", f"{one.low:.4f}", f"{one.high:.4f}", *behind, f"{one.effective:,.0f}"
        table.add_row(one.name, *numbers, one.said, style="bold" if one is contest.leader else "")
    return table


def candidates_lines(found: Candidates) -> list[str]:
    contests = (found.overall, *found.segments)
    lines = [
        f"n = {found.overall.n:,}; {1 - found.delta:.0%} for all statements jointly, at any time",
        f"verdict: {found.verdict}",
    ]
    for one in contests[1:]:
        lines.append(f"{one.rows} (n = {one.n:,}): {found.said(one)}")
    if len(found.overall.candidates) > _MOST:
        lines.append(f"{len(found.overall.candidates) - _MOST} candidates with lower values are not shown")
    return lines + [f"warning: {warning}" for warning in found.warnings]


def candidates_text(found: Candidates) -> str:
    from rich.console import Console

    written = io.StringIO()
    Console(file=written, width=110, color_system=None).print(candidates_table(found.overall))
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    return "\n".join([*lines, "", *candidates_lines(found)])


def draw_candidates(found: Candidates) -> Figure:
    """Draw a panel for all rows and one per segment (at most five). The leader's interval is shaded."""
    contests = (found.overall, *found.segments[:5])
    across = min(len(contests), 3)
    down = -(-len(contests) // across)
    height = max(2.2, 0.32 * min(len(found.overall.candidates), _MOST) + 1.3)
    figure = new_figure(3.6 * across + (3 if across == 1 else 1.4), height * down)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes, contest in zip(panels, contests, strict=False):
        _candidates_panel(axes, contest, len(contests) > 1)
    for axes in panels[len(contests) :]:
        axes.set_visible(False)
    return figure


def _candidates_panel(axes: Axes, contest: Contest, named: bool) -> None:
    shown = contest.candidates[:_MOST]
    axes.axvspan(contest.leader.low, contest.leader.high, color=BLUE, alpha=0.08, linewidth=0)
    for place, one in enumerate(reversed(shown)):
        colour = BLUE if one is contest.leader else GREY if one.eliminated else RED
        axes.plot([one.low, one.high], [place, place], color=colour, linewidth=2, alpha=0.5 if one.eliminated else 1)
        axes.plot(one.value, place, "x" if one.eliminated else "o", color=colour, markersize=6)
    axes.set_yticks(range(len(shown)), [one.name for one in reversed(shown)])
    axes.set_xlabel("value, with joint confidence intervals")
    out = sum(one.eliminated for one in contest.candidates)
    rows = f"{contest.rows}: " if named else ""
    axes.set_title(f"{rows}{contest.n:,} rows, {out} of {len(contest.candidates)} out (×)", loc="left", fontsize=11)
    tidy(axes, "x")
