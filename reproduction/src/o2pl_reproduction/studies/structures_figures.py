"""The pictures of `structures`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.protocols import Floats
from o2pl.simulation.figures import STYLES, spread_figure_labels
from o2pl_reproduction.claims.summary import percentile_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS, O2PL, VW, OTHERS = "#CC3311", "#EE7733", "#0077BB", "#333333"  # people with any colour vision can tell them apart
PER_ROW = 3


def colour_of(learner: str) -> str:
    if learner.startswith("bandit"):
        return OURS
    return O2PL if learner == "o2pl" else VW if learner.startswith("vw") else OTHERS


def shares_figure(shares: Mapping[str, Mapping[str, Floats]], labels: Mapping[str, str]) -> Figure:
    """Learner -> structure -> the share of the possible gain on each set: means with intervals, the best on top."""
    structures = list(dict.fromkeys(name for each in shares.values() for name in each))
    order = sorted(shares, key=lambda learner: float(np.mean([each.mean() for each in shares[learner].values()])))
    rows = math.ceil(len(structures) / PER_ROW)
    figure = new_figure(10.5, rows * (0.9 + 0.2 * len(order)) + 0.6)
    panels = figure.subplots(rows, min(PER_ROW, len(structures)), sharey=True, squeeze=False).flatten()
    for axes, structure in zip(panels, structures, strict=False):
        for place, learner in enumerate(order):
            values, colour = shares[learner][structure], colour_of(learner)
            low, high = percentile_interval(values)
            axes.plot([low, high], [place, place], color=colour, alpha=0.35, linewidth=3)
            axes.plot(values.mean(), place, "o", color=colour, markersize=5)
        if "bandit" in shares:
            axes.axvline(shares["bandit"][structure].mean(), color=OURS, linewidth=0.8, alpha=0.6, zorder=0)
        axes.set_title(structure, loc="left", fontsize=10, fontweight="bold")
        axes.set_yticks(range(len(order)), [labels[learner] for learner in order], fontsize=8)
        axes.set_ylim(-0.7, len(order) - 0.3)
        axes.tick_params(axis="x", labelsize=8)
        tidy(axes, "x")
    for axes in panels[len(structures) :]:
        axes.set_visible(False)
    for label, learner in (
        (each, name) for axes in panels for each, name in zip(axes.get_yticklabels(), order, strict=False)
    ):
        label.set_color(colour_of(learner))
    sets = len(next(iter(shares[order[-1]].values())))
    figure.suptitle(
        f"Share of the possible gain over uniform choice: mean over {sets} sets, 95 % bootstrap interval over sets\n"
        "red line: Bandit; learners by their mean over the structures",
        fontsize=10,
        x=0.01,
        ha="left",
    )
    return figure


def gaps_figure(gaps: Mapping[str, Floats], structures: int, labels: Mapping[str, str]) -> Figure:
    """Rival -> its share of the possible gain less Bandit's on each set: means with intervals, the best on top."""
    order = sorted(gaps, key=lambda learner: float(gaps[learner].mean()))
    figure = new_figure(7.4, 0.9 + 0.25 * (len(order) + 1))
    axes = figure.add_subplot()
    axes.axvline(0, color=OURS, linewidth=1, alpha=0.7, zorder=0)
    for place, learner in enumerate(order):
        colour = colour_of(learner)
        low, high = percentile_interval(gaps[learner])
        axes.plot([low, high], [place, place], color=colour, alpha=0.35, linewidth=4)
        axes.plot(gaps[learner].mean(), place, "o", color=colour, markersize=6)
    axes.plot(0, len(order), "o", color=OURS, markersize=8)
    axes.set_yticks(range(len(order) + 1), [*(labels[learner] for learner in order), "Bandit()"])
    for label, learner in zip(axes.get_yticklabels(), [*order, "bandit"], strict=True):
        label.set_color(colour_of(learner))
    axes.set_ylim(-0.7, len(order) + 0.6)
    sets = max(len(each) for each in gaps.values())
    axes.set_title(
        f"How much less of the possible gain the others earn: {sets} data sets, {structures} kinds of rewards",
        loc="left", fontsize=10, x=-0.3,
    )  # fmt: skip
    axes.set_xlabel("share of the possible gain, less that of Bandit() (95 % interval over sets)")
    tidy(axes, "x")
    return figure


def drift_figure(courses: Mapping[str, Mapping[str, tuple[Floats, Floats]]], labels: Mapping[str, str]) -> Figure:
    """Change -> learner -> (shares of the rounds, rewards of the stretches [sets, stretches]): means over sets."""
    figure = new_figure(10.5, 4.4)
    panels = figure.subplots(1, len(courses), sharey=True, squeeze=False).flatten()
    titles = {"reversal": "all classes change names at once", "gradual": "they change row by row"}
    learners = list(dict.fromkeys(name for each in courses.values() for name in each))
    styles = dict(zip(learners, ((OURS, "-"), *(style for style in STYLES if style[0] != "#D55E00")), strict=False))
    for axes, (change, lines) in zip(panels, courses.items(), strict=True):
        ends = {}
        for learner, (times, rewards) in lines.items():
            colour, line = styles[learner]
            middles = times - np.diff(times, prepend=0) / 2
            axes.plot(middles, rewards.mean(axis=0), color=colour, linestyle=line, linewidth=2)
            ends[learner] = float(rewards.mean(axis=0)[-1])
        if change == "reversal":
            axes.axvline(0.5, color="#888888", linewidth=0.8, zorder=0)
        else:
            axes.axvspan(0.25, 0.75, color="#888888", alpha=0.12, linewidth=0, zorder=0)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "¼", "½", "¾", "1"])
        axes.set_ylim(0, 1)
        axes.set_title(f"{change}: {titles[change]}", loc="left", fontsize=10)
        axes.set_xlabel("share of the rounds")
        tidy(axes)
        if axes is panels[-1]:
            spread_figure_labels(axes, {labels[name]: (end, styles[name][0]) for name, end in ends.items()}, 0.06)
    sets = len(next(iter(next(iter(courses.values())).values()))[1])
    panels[0].set_ylabel(f"mean reward, over {sets} sets")
    return figure
