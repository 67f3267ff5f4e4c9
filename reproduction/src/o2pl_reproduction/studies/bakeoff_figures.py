"""Figures of the bake-off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.protocols import Floats, Ints
from o2pl_reproduction.claims.summary import percentile_interval
from o2pl_reproduction.studies.bakeoff_statistics import above_chance, by_sign_test, by_z_test

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIN, LOSS, TIE = "#CC3311", "#0077BB", "#000000"  # colour-blind-safe
OUTCOME_STYLES = {1: (WIN, "^", "O2PL wins"), -1: (LOSS, "v", "O2PL loses"), 0: (TIE, ".", "no significant difference")}
PER_ROW = 4


def scatter_figure(
    rewards: Mapping[str, Floats], n_actions: Ints, played: Ints, rivals: Mapping[str, str], protocol: str
) -> Figure:
    """Draw normalised performance, one panel per rival, one mark per data set; above the diagonal O2PL is better."""
    height, width = math.ceil(len(rivals) / PER_ROW), min(PER_ROW, len(rivals))
    figure = new_figure(max(2.6 * width, 7.2), 2.9 * height + 0.8)
    panels = figure.subplots(height, width, squeeze=False).flatten()
    ours = above_chance(rewards["o2pl"], n_actions)
    scores = {name: above_chance(rewards[name], n_actions) for name in rivals}
    low, high = min(0.0, ours.min(), *(each.min() for each in scores.values())) - 0.03, 1.03
    for axes, (name, label) in zip(panels, rivals.items(), strict=False):
        verdicts = by_z_test(rewards["o2pl"], rewards[name], played)
        axes.plot([low, high], [low, high], color="#888888", linewidth=0.8, zorder=1)
        for verdict in (0, 1, -1):
            colour, shape, _ = OUTCOME_STYLES[verdict]
            mine = verdicts == verdict
            axes.plot(scores[name][mine], ours[mine], shape, color=colour, markersize=5, alpha=0.8, markeredgewidth=0)
        axes.set_title(f"{(verdicts > 0).sum()} wins, {(verdicts < 0).sum()} losses", loc="left", fontsize=9)
        axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        axes.set_xlabel(label, fontsize=9)
        axes.set_ylabel("O2PL", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
        axes.tick_params(labelsize=8)
    for axes in panels[len(rivals) :]:
        axes.set_visible(False)
    title = (
        f"{len(n_actions)} sets, {protocol} protocol: mean reward, 0 at chance and 1 if always right\n"
        "Above the line O2PL is better; wins and losses by one-sided Z-tests"
    )
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    _legend(figure)
    return figure


def gaps_figure(ours: Floats, theirs: Floats, names: Sequence[str], rival: str) -> Figure:
    """Draw O2PL's gap on each data set, sorted: the mean over seeds, and a line from the lowest to the highest seed."""
    gaps, verdicts = ours - theirs, by_sign_test(ours, theirs)
    means = gaps.mean(axis=1)
    order = np.argsort(means, kind="stable")
    figure = new_figure(7.2, 1.5 + 0.17 * len(names))
    axes = figure.add_subplot()
    for place, row in enumerate(order):
        colour, shape, _ = OUTCOME_STYLES[int(verdicts[row])]
        axes.plot([gaps[row].min(), gaps[row].max()], [place, place], color=colour, alpha=0.35, linewidth=2)
        axes.plot(means[row], place, shape, color=colour, markersize=6, markeredgewidth=0)
    axes.axvline(0, color="#888888", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(names)), [names[row] for row in order], fontsize=7)
    axes.set_ylim(-0.8, len(names) - 0.2)
    title = f"O2PL minus {rival}, by set\nmean over seeds, line from lowest to highest"
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("gap in mean reward")
    tidy(axes, "x")
    _legend(figure)
    return figure


def means_figure(rewards: Mapping[str, Floats], labels: Mapping[str, str]) -> Figure:
    """Draw the mean reward over data sets with its bootstrap interval, best first."""
    means = {name: each.mean(axis=1) for name, each in rewards.items()}
    order = sorted(means, key=lambda name: float(means[name].mean()))
    figure = new_figure(7.2, 1.2 + 0.26 * len(order))
    axes = figure.add_subplot()
    for place, name in enumerate(order):
        low, high = percentile_interval(means[name])
        colour = WIN if name.startswith("o2pl") else LOSS if name.startswith("vw") else TIE
        filled = colour if not name.endswith("-published") else "white"
        axes.plot([low, high], [place, place], color=colour, alpha=0.35, linewidth=3)
        axes.plot(means[name].mean(), place, "o", color=colour, markerfacecolor=filled, markersize=6)
    axes.set_yticks(range(len(order)), [f"{labels[name]}  {means[name].mean():.3f}" for name in order], fontsize=8)
    axes.set_ylim(-0.7, len(order) - 0.3)
    sets = len(next(iter(means.values())))
    axes.set_title(f"Mean reward over {sets} sets, 95 % bootstrap interval over sets", loc="left", fontsize=10)
    axes.set_xlabel("mean reward")
    tidy(axes, "x")
    return figure


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=c, marker=m, linestyle="", label=text) for c, m, text in OUTCOME_STYLES.values()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
