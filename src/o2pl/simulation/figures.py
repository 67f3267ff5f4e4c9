"""Figures made from stored rows only."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pyarrow import Table

# The colour-blind-safe palette of Okabe and Ito, and a line style each, for print.
STYLES: tuple[tuple[str, Any], ...] = (
    ("#0072B2", "-"),
    ("#D55E00", (0, (6, 2))),
    ("#009E73", (0, (3, 1, 1, 1))),
    ("#000000", (0, (1, 1.2))),
    ("#CC79A7", (0, (8, 2, 2, 2))),
    ("#56B4E9", "-"),
    ("#E69F00", (0, (4, 1))),
)


def figure_of_curves(
    rows: Table, column: str, labels: Mapping[str, str], *, title: str, ylabel: str, top: float
) -> Figure:
    """Draw `column` by round for each learner of one world: mean over seeds, and a band from the lowest to the highest.

    `labels`: the learners in order, with their names; the axis goes from 0 to `top`.
    """
    figure = new_figure(7.2, 4.2)
    axes = figure.add_subplot()
    learners, rounds, values = (np.asarray(rows[name]) for name in ("learner", "round", column))
    ends = {}
    for (name, label), (colour, line) in zip(labels.items(), STYLES, strict=False):
        mine = learners == name
        if not mine.any():
            continue
        x = np.unique(rounds[mine])
        y = np.stack([values[mine & (rounds == at)] for at in x])  # [points, seeds]
        axes.fill_between(x, y.min(axis=1), y.max(axis=1), color=colour, alpha=0.18, linewidth=0)
        axes.plot(x, y.mean(axis=1), color=colour, linestyle=line, linewidth=2)
        ends[label] = (float(y[-1].mean()), colour)
    spread_figure_labels(axes, ends, 0.055 * top)
    axes.set_xlim(0, rounds.max())
    axes.set_ylim(0, top)
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("round")
    axes.set_ylabel(ylabel)
    tidy(axes)
    return figure


def spread_figure_labels(axes: Axes, ends: Mapping[str, tuple[float, str]], gap: float) -> None:
    """Draw labels right of the axes at these heights, at least `gap` apart. ends: label -> (height, colour)"""
    heights = _apart_in_figure([value for value, _ in ends.values()], gap)
    for (label, (_, colour)), height in zip(ends.items(), heights, strict=True):
        place: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "annotation_clip": False,
        }
        axes.annotate(label, (1.0, height), (6, 0), color=colour, va="center", fontweight="bold", **place)


def _apart_in_figure(heights: list[float], gap: float) -> list[float]:
    """Return the heights, shifted up to avoid overlaps."""
    order = np.argsort(heights)
    placed = np.array(heights, np.float64)
    for below, above in itertools.pairwise(order):
        placed[above] = max(placed[above], placed[below] + gap)
    return [float(height) for height in placed]


def label_figure(axes: Axes, title: str, xlabel: str, ylabel: str, scale: str) -> None:
    """Set titles, legend and grid; the x axis is logarithmic, and the y axis if `scale` is "loglog"."""
    axes.set_xscale("log")
    axes.set_yscale("log" if scale == "loglog" else "linear")
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.legend(frameon=False, fontsize=8)
    tidy(axes)


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Save as `stem`.png and `stem`.svg. Equal figures give equal bytes."""
    paths = [stem.with_suffix(kind) for kind in (".png", ".svg")]
    for path in paths:
        write_figure(figure, path)
    return paths
