"""The demonstration: handwritten digits as a bandit, through the runner, and one picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from o2pl.environments import WORLDS
from o2pl.experiments import figures
from o2pl.experiments.classification import LEARNERS, run_unit
from o2pl.experiments.comparison import COLUMNS, crossed
from o2pl.experiments.experiment import Cell, Experiment, Size
from o2pl.experiments.store import results

LABELS = {
    "o2pl": "O2PL (default)",
    "o2pl-linear": "O2PL, linear only",
    "paper-replay": "paper's replay",
    "uniform": "uniform",
}


def cells(data: str | None) -> Sequence[Cell]:
    return crossed({"digits": WORLDS["digits"]}, {name: LEARNERS[name] for name in LABELS})


DEMO = Experiment(
    name="demo",
    summary="Handwritten digits (64 grey values, 10 classes): name the digit, hear only right or wrong.",
    sizes={"quick": Size(rounds=1797, seeds=3)},
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="mean_reward",
)


def draw_demo(out: str | os.PathLike[str]) -> list[Path]:
    """The picture of the demo's rows under `out`."""
    figure = figures.curves(
        results(out, DEMO.name),
        "mean_reward",
        LABELS,
        title="Digits as a bandit: only “right” or “wrong” is told\nmean of three seeds, band from lowest to highest",
        ylabel="mean reward so far",
        top=1.0,
    )
    return figures.save_figure(figure, Path(out) / "demo")
