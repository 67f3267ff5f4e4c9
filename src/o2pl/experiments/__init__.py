"""Experiments of the paper and our own: runs, results, figures and reports.

`EXPERIMENTS` holds them by name; those of the paper are `STUDIES`, with claims, figures and verdicts. A new one is a
file with an `Experiment` (or a `Study`) in it and a row in `registry.py` (or in `studies.py`):

    from o2pl.experiments import EXPERIMENTS, Options, results, run
    run(EXPERIMENTS["wheel"], Options("quick", seeds=range(5)), out="out")
    results("out", "wheel")  # a pyarrow Table
"""

from typing import TYPE_CHECKING

from o2pl.lazily import attributes_of

if TYPE_CHECKING:
    from o2pl.experiments.engines import Local, Ray
    from o2pl.experiments.experiment import Cell, Experiment, Options, Size, Unit
    from o2pl.experiments.registry import EXPERIMENTS
    from o2pl.experiments.runner import Report, run
    from o2pl.experiments.store import results, seconds

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

__getattr__, __dir__ = attributes_of(
    __name__,
    {
        "o2pl.experiments.engines": "Local Ray",
        "o2pl.experiments.experiment": "Cell Experiment Options Size Unit",
        "o2pl.experiments.registry": "EXPERIMENTS",
        "o2pl.experiments.runner": "Report run",
        "o2pl.experiments.store": "results seconds",
    },
)
