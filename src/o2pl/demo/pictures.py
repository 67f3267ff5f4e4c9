"""The demo's figures, each for a light page and for a dark one."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl.demo.improved import Improvement
from o2pl.demo.judged import OldRows
from o2pl.demo.online import BANDIT, UNIFORM, Online
from o2pl.demo.served import ServedCalls
from o2pl.drawing import new_figure, tidy
from o2pl.simulation.figures import spread_figure_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Theme(NamedTuple):
    ink: str  # of text and axes
    ours: str
    rivals: tuple[str, ...]
    faint: str


LIGHT = Theme("#1c1c1c", "#c2371b", ("#0072b2", "#00785a", "#7a4fa3", "#6b6b6b"), "#9a9a9a")
DARK = Theme("#e8e8e8", "#ff8a65", ("#6cb8f0", "#4fd1a5", "#c9a4ec", "#a8a8a8"), "#8c8c8c")
_SIZE = (5.4, 3.3)  # inches: small, so that letters stay readable on a phone
_LINES = ("-", (0, (6, 2)), (0, (3, 1, 1, 1)), (0, (1, 1.2)))


def picture_in_both_themes(draw: Callable[[Theme], Figure]) -> tuple[bytes, bytes]:
    """Return SVG for light and for dark pages."""
    return _picture_svg(draw, LIGHT), _picture_svg(draw, DARK)


def _picture_svg(draw: Callable[[Theme], Figure], theme: Theme) -> bytes:
    import matplotlib as mpl

    ink: dict[Any, Any] = dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), theme.ink
    )
    clear: dict[Any, Any] = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none")
    with mpl.rc_context({**ink, **clear, "svg.hashsalt": "o2pl", "font.size": 10}):
        written = io.BytesIO()
        draw(theme).savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def picture_online(found: Online, theme: Theme) -> Figure:
    """Draw the mean reward so far by round: mean over seeds, and a band from the lowest to the highest."""
    figure = new_figure(*_SIZE)
    axes = figure.add_subplot()
    rivals = dict(zip([name for name in found.rewards if name != BANDIT], theme.rivals, strict=False))
    ends = {}
    for name in found.rewards:
        lines = found.so_far(name)
        at = np.unique(np.linspace(10, lines.shape[1], 200).astype(int))  # the first few rounds are noise
        colour, width = (theme.ours, 2.6) if name == BANDIT else (rivals[name], 1.6)
        style = "-" if name == BANDIT else _LINES[list(rivals).index(name)]
        low, middle, high = (take(lines[:, at - 1], axis=0) for take in (np.min, np.mean, np.max))
        axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(at, middle, color=colour, linestyle=style, linewidth=width)
        ends[name] = (float(lines[:, -1].mean()), colour)
    spread_figure_labels(axes, ends, 0.062)
    axes.set(xlim=(0, at[-1]), ylim=(0, 1), xlabel="round", ylabel="mean reward so far")
    tidy(axes)
    return figure


def picture_judged(found: OldRows, theme: Theme) -> Figure:
    """Draw the intervals from the log, and the true values."""
    figure = new_figure(_SIZE[0], 2.6)
    axes = figure.add_subplot()
    for place, one in enumerate(reversed(found.policies)):
        axes.plot([one.low, one.high], [place, place], color=theme.rivals[0], linewidth=5, alpha=0.5)
        axes.plot(one.value, place, "o", color=theme.rivals[0], markersize=7)
        axes.plot(one.truth, place, "D", color=theme.ours, markersize=6, markerfacecolor="none", markeredgewidth=1.8)
    axes.set_yticks(range(len(found.policies)), [one.name for one in reversed(found.policies)])
    axes.set(xlim=(0, 1), ylim=(-0.6, len(found.policies) - 0.4), xlabel="reward per round")
    tidy(axes, "x")
    return figure


def picture_improved(found: Sequence[Improvement], theme: Theme) -> Figure:
    """Draw for each log the promised gain over the incumbent, the true gain, and the gain without pessimism."""
    figure = new_figure(_SIZE[0], 3.0)
    axes = figure.add_subplot()
    axes.axvline(0, color=theme.ink, linewidth=1.4)
    for place, one in enumerate(reversed(found)):
        if one.deploy:
            axes.plot([one.promised, one.gain], [place, place], color=theme.ours, linewidth=2, alpha=0.5)
            axes.plot(one.promised, place, "|", color=theme.ours, markersize=14, markeredgewidth=2)
        axes.plot(one.naive, place, "x", color=theme.rivals[0], markersize=8, markeredgewidth=2)
        axes.plot(one.gain, place, "o", color=theme.ours, markersize=9)
    names = [f"{one.rows} rows: {'deploy' if one.deploy else 'keep'}" for one in found]
    axes.set_yticks(range(len(found)), names[::-1])
    axes.set(ylim=(-0.6, len(found) - 0.4), xlabel="gain over the incumbent, reward per decision (exact)")
    tidy(axes, "x")
    return figure


def picture_served(found: ServedCalls, theme: Theme) -> Figure:
    """Draw the expected clicks per reader over the calls."""
    parts = max(2, min(20, len(found.calls) // 100))
    at = (np.arange(parts) + 0.5) * len(found.calls) / parts
    figure = new_figure(*_SIZE)
    axes = figure.add_subplot()
    names = {
        "best": ("best possible", theme.faint, _LINES[3], 1.6),
        "chosen": ("o2pl serve", theme.ours, "-", 2.6),
        "editor": ("editor's choice", theme.rivals[0], _LINES[1], 1.6),
        "uniform": (UNIFORM, theme.rivals[3], _LINES[2], 1.6),
    }
    ends = {}
    for who, (label, colour, style, width) in names.items():
        course = found.course(who, parts)
        axes.plot(at, course, color=colour, linestyle=style, linewidth=width)
        ends[label] = (float(course[-1]), colour)
    top = max(found.course("best", parts).max() * 1.1, 0.1)
    spread_figure_labels(axes, ends, 0.062 * top)
    axes.set(xlim=(0, len(found.calls)), ylim=(0, top), xlabel="readers", ylabel="clicks per reader (expected)")
    tidy(axes)
    return figure
