"""Sensitivity to overlap: the value of a learned policy as the logger's guaranteed floor decreases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.protocols import Floats
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.figures import STYLES
from o2pl.simulation.worlds import BernoulliTask, SoftmaxLogger, SyntheticLog
from o2pl_reproduction.claims.intervals import Measurement, least
from o2pl_reproduction.claims.study import Claim, Study
from o2pl_reproduction.claims.summary import final_values, mean_and_error
from o2pl_reproduction.studies import offline, offline_arms, offline_obp
from o2pl_reproduction.studies.offline import LABELS, PAPER_RIVALS, UNTUNED, ahead, leads, smallest_lead

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pyarrow import Table

FLOORS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)  # ε/K
TASK = BernoulliTask("logistic")
LOGGER_SHARPNESS = 5.0
LEARNERS = offline.tuned_learners(offline.SYNTHETIC) | offline_arms.learners(offline.SYNTHETIC)
LOW = 0.005  # floors up to this are the ones of our own bar
CONDITIONS = (
    "with a baseline, a control variate and an l2, chosen on other seeds by the same search as the rivals' settings; "
    "deployed greedily"
)
DIAGNOSTICS = {"maximum": "mean maximum", "minimum": "mean minimum", "entropy": "mean entropy (nats)"}


def world(floor: float) -> str:
    return f"floor-{floor:g}"


def log_of(floor: float) -> SyntheticLog:
    return SyntheticLog(TASK, SoftmaxLogger(sharpness=LOGGER_SHARPNESS, epsilon=floor * TASK.n_actions))


def cells(data: str | None) -> Sequence[Cell]:
    return offline.crossed_tasks({world(floor): log_of(floor) for floor in FLOORS}, LEARNERS)


def run_unit(unit: Unit) -> Columns:
    return offline.run_unit(unit, LEARNERS)


def floors_of(rows: Table) -> dict[str, float]:
    """Return world -> its floor, for the worlds in these rows, by decreasing floor."""
    present = set(rows["world"].to_pylist())
    return {world(floor): floor for floor in FLOORS if world(floor) in present}


def spared(rows: Table, learner: str, rivals: Sequence[str]) -> Measurement:
    """What a rival loses from the highest floor to the lowest, less what the learner loses; the smallest of several."""
    floors, values = list(floors_of(rows)), final_values(rows, "value")
    high, low = (np.column_stack([values[floors[end], each] for each in (learner, *rivals)]) for end in (0, -1))

    def figure(high: Floats, low: Floats) -> Floats:
        lost = high - low
        return np.asarray(lost[:, 1:] - lost[:, :1])

    return least(figure, high, low)


def claims(rows: Table) -> Sequence[Claim]:
    """Return the claims. Leads are the smallest over the floors, with joint intervals."""
    name, low = "overlap", [each for each, floor in floors_of(rows).items() if floor <= LOW]
    strongest = "“the strongest method across the sweep”"
    graceful = "“degrades more gracefully than the standard IPW, direct-method, and doubly robust baselines”"
    by_letter = smallest_lead(leads(rows, "o2pl-paper", PAPER_RIVALS))
    return [
        ahead(
            f"{name}/strongest",
            "At every floor O2PL is worth more than IPW-CSC, DR and additive DM (smallest lead over floors and "
            "rivals).",
            smallest_lead(leads(rows, "o2pl", PAPER_RIVALS)),
            "recipe",
            CONDITIONS,
            paper=strongest,
            literal=by_letter,
        ),
        ahead(
            f"{name}/paper-letter",
            "The paper's objective as printed is above IPW-CSC, DR and additive DM at every floor.",
            by_letter,
            "paper",
            paper=strongest,
        ),
        *(
            ahead(
                f"{name}/graceful-{rival}",
                f"From the highest floor to the lowest O2PL loses less than {LABELS[rival]} (its loss minus O2PL's).",
                spared(rows, "o2pl", [rival]),
                "recipe",
                CONDITIONS,
                paper=graceful,
                literal=spared(rows, "o2pl-paper", [rival]),
            )
            for rival in PAPER_RIVALS
        ),
        ahead(
            f"{name}/graceful",
            "From the highest floor to the lowest O2PL loses less than each of IPW-CSC, DR and additive DM (smallest "
            "of their losses minus O2PL's).",
            spared(rows, "o2pl", PAPER_RIVALS),
            "recipe",
            CONDITIONS,
            paper=graceful,
            literal=spared(rows, "o2pl-paper", PAPER_RIVALS),
        ),
        ahead(
            f"{name}/graceful-dm-arms",
            "From the highest floor to the lowest O2PL loses less than a DM with one model per arm.",
            spared(rows, "o2pl", ["dm-arms"]),
            "own",
            CONDITIONS,
        ),
        *(
            ahead(
                f"{name}/low-floors-{rival}",
                f"At floors up to {LOW:g} O2PL is worth more than {LABELS[rival]} (smallest lead).",
                smallest_lead(leads(rows, "o2pl", [rival]), low),
                "own",
                CONDITIONS,
            )
            for rival in (*PAPER_RIVALS, *UNTUNED)
        ),
        ahead(
            f"{name}/strongest-of-all",
            "At every floor O2PL is worth more than all of them and a DM with one model per arm (smallest lead).",
            smallest_lead(leads(rows, "o2pl", [*PAPER_RIVALS, "dm-arms"])),
            "own",
            CONDITIONS,
        ),
        *offline_obp.claims(name, rows, "At every floor", CONDITIONS),
        *offline_arms.claims(name, rows, offline.SYNTHETIC, " on the average of the floors"),
        *offline_arms.claims_of_part(
            name, rows, offline.SYNTHETIC, "low-floors", f" at floors up to {LOW:g} (mean)", low
        ),
    ]


def figures(rows: Table) -> Mapping[str, Figure]:
    figure = new_figure(9.6, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    _values(left, rows)
    _diagnostics(right, rows)
    title = "Pessimism alone: value gained by penalty and clip, mean over the floors (95 % intervals)"
    pessimism = offline_arms.figure(rows, offline.SYNTHETIC, title)
    return {"overlap": figure, "overlap-pessimism": pessimism, **offline_obp.figures("overlap", rows)}


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    return offline.table(rows, offline_arms.labels(offline.SYNTHETIC), offline_obp.values("overlap", rows))


def _values(axes: Axes, rows: Table) -> None:
    """Draw the value by floor: mean over seeds, band of two standard errors, labels at the lowest floor."""
    floors, values = floors_of(rows), final_values(rows, "value")
    x = list(floors.values())
    ends = {}
    for name, (colour, line) in zip([*offline.SYNTHETIC, "o2pl-paper"], STYLES, strict=False):
        mean, error = np.array([mean_and_error(values[each, name]) for each in floors]).T
        band = 2 * np.nan_to_num(error)
        axes.fill_between(x, mean - band, mean + band, color=colour, alpha=0.15, linewidth=0)
        axes.plot(x, mean, color=colour, linestyle=line, linewidth=2, marker="o", markersize=4)
        ends[LABELS[name]] = (mean[-1], colour)
    oracle = float(np.mean(rows["oracle"].to_numpy()))
    axes.axhline(oracle, color="#000000", linestyle=(0, (6, 2)), linewidth=1)
    ends["oracle"] = (oracle, "#000000")
    _end_labels(axes, ends, gap=0.022)
    axes.set_ylim(top=oracle + 0.06)  # room for the labels
    axes.set_title("exact value of the learned policy", loc="left", fontsize=11)
    _floor_axis(axes)


def _diagnostics(axes: Axes, rows: Table) -> None:
    floors = floors_of(rows)
    ends = {}
    for (column, label), (colour, line) in zip(DIAGNOSTICS.items(), STYLES, strict=False):
        found = final_values(rows, column)
        mean = [float(found[each, "o2pl"].mean()) for each in floors]
        axes.plot(list(floors.values()), mean, color=colour, linestyle=line, linewidth=2, marker="o", markersize=4)
        ends[label] = (mean[-1], colour)
    _end_labels(axes, ends, gap=0.06)
    axes.set_ylim(bottom=0)
    axes.set_title("the logger's action probabilities", loc="left", fontsize=11)
    _floor_axis(axes)


def _floor_axis(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.invert_xaxis()  # overlap weakens to the right
    axes.set_xticks(FLOORS, [f"{floor:g}" for floor in FLOORS], rotation=45)
    axes.minorticks_off()
    axes.set_xlabel("guaranteed floor ε/K")
    tidy(axes)


def _end_labels(axes: Axes, ends: Mapping[str, tuple[float, str]], gap: float) -> None:
    """Draw names at the right ends of the lines, at least `gap` apart."""
    height = -np.inf
    for label, (value, colour) in sorted(ends.items(), key=lambda end: end[1][0]):
        height = max(value, height + gap)
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
        place |= {"textcoords": "offset points", "fontsize": 9, "fontweight": "bold"}
        axes.annotate(label, (1.0, height), (6, 0), color=colour, va="center", **place)


OVERLAP = Study(
    experiment=Experiment(
        name="overlap",
        summary="Policies from logs of ever weaker overlap, valued exactly.",
        sizes={
            "quick": Size(2000, 5, datasets=tuple(world(floor) for floor in (0.1, 0.02, 0.005, 0.001))),
            "full": Size(2000, 20),
        },
        cells=cells,
        run=run_unit,
        columns=offline.COLUMNS,
        headline="value",
    ),
    title="Sensitivity to overlap",
    claim="As the logger's guaranteed floor falls all methods deteriorate, but O2PL remains the strongest across the "
    "sweep and degrades most gracefully.",
    settings=(
        (
            "Task: ten features, five actions, Bernoulli rewards with logistic means. The logger is (1 - ε) softmax + "
            "ε/K. Its logits have a standard deviation of about 5 and are independent of the rewards. Logs of 2,000 "
            "rows, 20 seeds, seven floors (quick: 5 seeds, four floors)."
        ),
        *offline_obp.SETTINGS,
        *offline.settings_text(offline.SYNTHETIC, offline.SYNTHETIC_SEARCH),
    ),
    claims=claims,
    figures=figures,
    table=table,
    headline="overlap/strongest",
)
