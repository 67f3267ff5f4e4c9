"""Experiments: what is run, and the pictures made of it.

`EXPERIMENTS` holds them by name; those of the paper are `STUDIES`, with claims, figures and verdicts. A new one is a
file with an `Experiment` (or a `Study`) in it and a row here (or in `studies.py`):

    from o2pl.experiments import EXPERIMENTS, Options, results, run
    run(EXPERIMENTS["wheel"], Options("quick", seeds=range(5)), out="out")
    results("out", "wheel")  # a pyarrow Table
"""

from o2pl.experiments.bakeoff import BAKEOFF_TUNING
from o2pl.experiments.classification import CLASSIFICATION
from o2pl.experiments.engines import Local, Ray
from o2pl.experiments.experiment import Cell, Experiment, Options, Size, Unit
from o2pl.experiments.neural import NEURAL
from o2pl.experiments.prices import PRICES_TUNING
from o2pl.experiments.runner import Report, run
from o2pl.experiments.store import results, seconds
from o2pl.experiments.structures import STRUCTURES_TUNING
from o2pl.experiments.studies import STUDIES

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        CLASSIFICATION,
        BAKEOFF_TUNING,
        STRUCTURES_TUNING,
        PRICES_TUNING,
        NEURAL,
        *(study.experiment for study in STUDIES),
    )
}

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Experiment",
    "Local",
    "Options",
    "Ray",
    "Report",
    "Size",
    "Unit",
    "results",
    "run",
    "seconds",
]
