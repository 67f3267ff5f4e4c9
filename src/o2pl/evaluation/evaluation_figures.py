"""The figure of an `Evaluation`: estimates, propensities, weights, and values over time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, write_figure
from o2pl.evaluation.candidates import Candidates
from o2pl.evaluation.list_evaluation import ListEvaluation
from o2pl.evaluation.results import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colour-blind-safe palette of Okabe and Ito.
BLUE, RED, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6e6e6e"
_MOST_ACTIONS = 24  # more are not legible


def evaluation_figure(found: Evaluation) -> Figure:
    figure = new_figure(10.5, 7.2)
    top, bottom = figure.subplots(2, 2)
    _evaluation_figure_estimates(top[0], found)
    _evaluation_figure_propensities(top[1], found)
    _evaluation_figure_weights(bottom[0], found)
    if found.sensitivity is not None:
        _evaluation_figure_sensitivity(bottom[1], found)
    elif found.sequence is None:
        _evaluation_figure_blocks(bottom[1], found)
    else:
        _evaluation_figure_running(bottom[1], found)
    for axes in (*top, *bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontsize(11)
    return figure


def evaluation_figure_of_lists(found: ListEvaluation) -> Figure:
    """Draw the values of the slots and of the list, with joint confidence intervals."""
    figure = new_figure(7.2, 3.4)
    axes = figure.subplots()
    shown = (*found.slots, found.whole)
    for colour, name, values, shift in (
        (BLUE, found.policy, shown, -0.08 if found.baseline else 0.0),
        (RED, found.baseline_name, found.baseline, 0.08),
    ):
        if values:
            places = np.arange(len(values)) + shift
            lows, highs = np.array([one.low for one in values]), np.array([one.high for one in values])
            axes.vlines(places, lows, highs, color=colour, linewidth=2)
            axes.plot(places, [one.value for one in values], "o", color=colour, label=name)
    axes.set_xticks(range(len(shown)), [one.name for one in shown])
    axes.axvline(len(shown) - 1.5, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_ylabel("value, with confidence interval")
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    _evaluation_figure_title(axes, f"{found.n:,} lists, {1 - found.delta:.0%} joint confidence")
    return figure


def save_evaluation_figure(found: Evaluation | Candidates, path: Path) -> Path:
    """Save the figure. The file extension sets the format, default PNG. Equal evaluations give equal bytes."""
    target = path if path.suffix else path.with_suffix(".png")
    write_figure(found.figure(), target)
    return target


def _evaluation_figure_title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left")


def _evaluation_figure_estimates(axes: Axes, found: Evaluation) -> None:
    """Draw points and intervals, the first on top. Infinite intervals are cut off."""
    shown = list(found.estimates)
    ends = [end for one in shown for end in (one.low, one.value, one.high) if math.isfinite(end)]
    if found.baseline is not None:
        ends += [end for end in (found.baseline.low, found.baseline.high) if math.isfinite(end)]
    margin = 0.08 * (max(ends) - min(ends)) or 0.1
    left, right = min(ends) - margin, max(ends) + margin
    if found.baseline is not None:
        base = found.baseline
        axes.axvspan(max(base.low, left), min(base.high, right), color=RED, alpha=0.12, linewidth=0)
        axes.axvline(base.value, color=RED, linewidth=1.5)
        axes.annotate(
            f"baseline: {base.name}",
            (base.value, 1.0),
            (4, 2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=RED,
            fontsize=9,
            annotation_clip=False,
        )
    for place, one in enumerate(reversed(shown)):
        colour = BLUE if one.name == found.headline else GREY
        width = 3 if one.name == found.headline else 1.5
        axes.plot([max(one.low, left), min(one.high, right)], [place, place], color=colour, linewidth=width)
        axes.plot(one.value, place, "o", color=colour, markersize=6)
    axes.set_yticks(range(len(shown)), [one.name for one in reversed(shown)])
    axes.set_xlim(left, right)
    axes.set_xlabel(f"value, with {1 - found.delta:.0%} confidence intervals")
    _evaluation_figure_title(axes, "Value of the policy\n" if found.baseline else "Value of the policy")
    axes.grid(axis="x", alpha=0.25)


def _evaluation_figure_propensities(axes: Axes, found: Evaluation) -> None:
    """Draw played / expected by action; 1 for correct propensities."""
    test = found.diagnostics.calibration
    cells = sorted(test.actions, key=lambda cell: cell.p_value)[:_MOST_ACTIONS]
    cells.sort(key=lambda cell: test.actions.index(cell))
    axes.axhline(1, color=GREY, linewidth=1)
    for place, cell in enumerate(cells):
        far = cell.p_value * max(test.tests, 1) < 0.01
        axes.errorbar(
            place, cell.ratio, yerr=1.96 * cell.error, fmt="s" if far else "o", color=RED if far else BLUE, capsize=3
        )
    turned: dict[str, Any] = (
        {"rotation": 30, "ha": "right"} if max((len(cell.action) for cell in cells), default=0) > 3 else {}
    )
    axes.set_xticks(range(len(cells)), [cell.action for cell in cells], **turned)
    axes.set_xlim(-0.6, max(len(cells), 1) - 0.4)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("action")
    axes.set_ylabel("played / expected")
    said = f"p = {test.p_value:.2g}" if test.tests else "too few rows to test"
    kind = "estimated propensities" if found.why_estimated else "propensities"
    _evaluation_figure_title(axes, f"Do the {kind}\nmatch the actions? ({said})")
    axes.grid(axis="y", alpha=0.25)


def _evaluation_figure_weights(axes: Axes, found: Evaluation) -> None:
    """Draw the fraction of rows with at least this weight."""
    seen = found.diagnostics
    share, weight = seen.largest_weights
    some = (weight > 0) & np.isfinite(weight)
    axes.loglog(weight[some], share[some], color=BLUE, linewidth=2, drawstyle="steps-pre")
    if some.any():
        axes.set_xlim(max(float(weight[some].min()) / 1.5, 1e-3), 1.5 * max(float(weight[some].max()), seen.clip))
    axes.axvline(seen.clip, color=RED, linewidth=1.5, linestyle=(0, (6, 2)))
    axes.annotate(
        f"clip {seen.clip:.1f}",
        (seen.clip, 1.0),
        (-4, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        color=RED,
        va="top",
        ha="right",
        fontsize=9,
    )
    axes.set_xlabel("importance weight π(a|x) / propensity")
    axes.set_ylabel("fraction of rows above")
    _evaluation_figure_title(axes, f"Weights: {seen.n:,} rows,\neffective sample size {seen.effective:,.0f}")
    axes.grid(alpha=0.25)


def _evaluation_figure_blocks(axes: Axes, found: Evaluation) -> None:
    drift = found.diagnostics.drift
    places = (np.arange(len(drift.means)) + 0.5) * found.diagnostics.n / max(len(drift.means), 1)
    axes.errorbar(places, drift.means, yerr=1.96 * drift.errors, fmt="o", color=BLUE, capsize=3)
    if len(drift.means):
        axes.axhline(float(drift.means.mean()), color=GREY, linewidth=1)
    axes.set_xlim(0, found.diagnostics.n)
    axes.set_xlabel("row")
    axes.set_ylabel("policy's clipped value")
    said = f"p = {drift.p_value:.2g}" if len(drift.means) else "too few rows to test"
    _evaluation_figure_title(axes, f"Is the value constant over time? ({said})")
    axes.grid(axis="y", alpha=0.25)


def _evaluation_figure_sensitivity(axes: Axes, found: Evaluation) -> None:
    """Draw the estimate (dark) and its interval (light) if the true odds are off by at most Γ."""
    assert found.sensitivity is not None
    ranges = found.sensitivity.ranges
    gammas = [one.gamma for one in ranges]
    axes.fill_between(gammas, [one.low for one in ranges], [one.high for one in ranges], color=BLUE, alpha=0.15)
    axes.fill_between(gammas, [one.lowest for one in ranges], [one.highest for one in ranges], color=BLUE, alpha=0.45)
    if found.difference is not None:
        axes.axhline(0, color=RED, linewidth=1.5)
        if 1 < found.sensitivity.flips < gammas[-1]:
            axes.axvline(found.sensitivity.flips, color=RED, linewidth=1.5, linestyle=(0, (6, 2)))
            axes.annotate(
                f"flips at {found.sensitivity.flips:.2f}",
                (found.sensitivity.flips, 1.0),
                (-4, -2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                color=RED,
                va="top",
                ha="right" if found.sensitivity.flips > 1.3 else "left",
                fontsize=9,
            )
    axes.set_xlim(gammas[0], gammas[-1])
    axes.set_xlabel("Γ: factor by which the true odds of the actions may be off")
    axes.set_ylabel("value" if found.difference is None else "policy minus baseline")
    _evaluation_figure_title(axes, "If the estimated propensities are wrong")
    axes.grid(alpha=0.25)


def _evaluation_figure_running(axes: Axes, found: Evaluation) -> None:
    """Draw the anytime-valid interval: of the difference if there is one, else of the value."""
    shown = found.difference_sequence or found.sequence
    assert shown is not None
    rows = np.unique(np.geomspace(1, len(shown.lower), 400).astype(np.int64))
    low, high = shown.lower[rows - 1], shown.upper[rows - 1]
    axes.fill_between(rows, low, high, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(rows, low, color=BLUE, linewidth=2)
    axes.plot(rows, high, color=BLUE, linewidth=2)
    if found.difference_sequence is not None:
        axes.axhline(0, color=RED, linewidth=1.5)
    axes.set_xscale("log")
    axes.set_xlim(max(1, len(shown.lower) // 1000), len(shown.lower))
    axes.set_xlabel("row")
    axes.set_ylabel("policy minus baseline" if found.difference_sequence else "value")
    _evaluation_figure_title(axes, "Anytime-valid interval")
    axes.grid(alpha=0.25)
