"""Runs of learners in simulated worlds: units, engines that compute them in parallel, and rows on disk.

from o2pl.simulation import Options, results, run
run(experiment, Options("quick", seeds=range(5)), out="out")  # stopped at any time; the same call resumes it
results("out", experiment.name)  # a pyarrow Table
"""

from typing import TYPE_CHECKING

from o2pl.lazily import attributes_of

if TYPE_CHECKING:
    from o2pl.simulation.engines import Local, Ray
    from o2pl.simulation.experiment import Cell, Experiment, Options, Size, Unit
    from o2pl.simulation.runner import Report, run
    from o2pl.simulation.store import results, seconds

__all__ = ["Cell", "Experiment", "Local", "Options", "Ray", "Report", "Size", "Unit", "results", "run", "seconds"]

__getattr__, __dir__ = attributes_of(
    __name__,
    {
        "o2pl.simulation.engines": "Local Ray",
        "o2pl.simulation.experiment": "Cell Experiment Options Size Unit",
        "o2pl.simulation.runner": "Report run",
        "o2pl.simulation.store": "results seconds",
    },
)
