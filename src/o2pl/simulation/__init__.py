"""The researcher's bench: worlds, rivals, comparisons of learners, and experiments of one's own.

from o2pl.simulation import compare
print(compare({"bandit": o2pl.Bandit(), "linucb": "linucb"}, ["digits"], seeds=3, rounds=500, out="runs"))

from o2pl.simulation import Options, results, run
run(experiment, Options("quick", seeds=range(5)), out="out")  # stopped at any time; the same call resumes it
results("out", experiment.name)  # a pyarrow Table
"""

from typing import TYPE_CHECKING

from o2pl.lazily import lazily_imported

if TYPE_CHECKING:
    from o2pl.evaluation.play import play, regret
    from o2pl.simulation.comparing import LearnerComparison, compare
    from o2pl.simulation.engines import InProcess, Local, Ray
    from o2pl.simulation.experiment import Cell, Experiment, Options, Size, Unit
    from o2pl.simulation.runner import Report, run
    from o2pl.simulation.store import results, seconds

__all__ = [
    "Cell",
    "Experiment",
    "InProcess",
    "LearnerComparison",
    "Local",
    "Options",
    "Ray",
    "Report",
    "Size",
    "Unit",
    "compare",
    "play",
    "regret",
    "results",
    "run",
    "seconds",
]

__getattr__, __dir__ = lazily_imported(
    __name__,
    {
        "o2pl.evaluation.play": "play regret",
        "o2pl.simulation.comparing": "LearnerComparison compare",
        "o2pl.simulation.engines": "InProcess Local Ray",
        "o2pl.simulation.experiment": "Cell Experiment Options Size Unit",
        "o2pl.simulation.runner": "Report run",
        "o2pl.simulation.store": "results seconds",
    },
)
