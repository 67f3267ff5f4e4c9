"""Simulated worlds with exact expected rewards: regret and value are computed, not estimated.

`WORLDS` has every world by name with its default settings; `dataclasses.replace` changes them. A new world is one file
and one row; the tests of `tests/simulation/worlds/test_contract.py` then cover it. `LOGGED_TASKS` are logs for offline
learning, and `SELECTION_TASKS` are data for selecting an arm.
"""

from o2pl.protocols import Environment
from o2pl.simulation.worlds.advertising import Advertising
from o2pl.simulation.worlds.classification import Classification
from o2pl.simulation.worlds.continuous import ContinuousRounds, ContinuousWorld, GaussianExample, Pricing, Toy
from o2pl.simulation.worlds.datasets import (
    Dataset,
    Embedded,
    OpenML,
    ParquetSet,
    Source,
    Synthetic,
    catalogue,
    make_dataset,
)
from o2pl.simulation.worlds.dependent import DependentArms, DependentSample
from o2pl.simulation.worlds.logged import (
    BernoulliTask,
    Logged,
    MulticlassLog,
    Overlap,
    SoftmaxLogger,
    SyntheticLog,
    overlap,
)
from o2pl.simulation.worlds.margin import Margin
from o2pl.simulation.worlds.response import RESPONSES, Response, ResponseRounds
from o2pl.simulation.worlds.rounds import TableRounds
from o2pl.simulation.worlds.single import SingleContext
from o2pl.simulation.worlds.structured import Drifting, Structured
from o2pl.simulation.worlds.waves import Waves
from o2pl.simulation.worlds.wheel import Wheel

WORLDS: dict[str, Environment] = {
    "wheel": Wheel(),
    "margin": Margin(),
    "waves": Waves(),
    "single-context": SingleContext(),
    "gaussian": GaussianExample(),
    "toy": Toy(),
    "pricing": Pricing(),
    "advertising": Advertising(),
    "iris": Classification(Embedded("iris")),
    "wine": Classification(Embedded("wine")),
    "breast-cancer": Classification(Embedded("breast_cancer")),
    "digits": Classification(Embedded("digits")),
    "syn-5": Classification(Synthetic(features=5)),
    "syn-20": Classification(Synthetic(features=20)),
    "logistic": BernoulliTask("logistic"),
    "linear-bernoulli": BernoulliTask("linear"),
    "misspecified": BernoulliTask("misspecified"),
    **{f"digits-{name}": Structured(Embedded("digits"), name) for name in ("noisy", "several", "graded", "costs")},
    "digits-reversal": Drifting(Embedded("digits"), "reversal"),
    "digits-gradual": Drifting(Embedded("digits"), "gradual"),
}

LOGGED_TASKS: dict[str, SyntheticLog | MulticlassLog] = {
    "logistic": SyntheticLog(BernoulliTask("logistic")),
    "weak-overlap": SyntheticLog(BernoulliTask("logistic"), SoftmaxLogger(sharpness=3.0, epsilon=0.05)),
    "linear-bernoulli": SyntheticLog(BernoulliTask("linear")),
    "misspecified": SyntheticLog(BernoulliTask("misspecified")),
    "iris": MulticlassLog(Embedded("iris")),
    "wine": MulticlassLog(Embedded("wine")),
    "breast-cancer": MulticlassLog(Embedded("breast_cancer")),
    "digits": MulticlassLog(Embedded("digits")),
    "syn-5": MulticlassLog(Synthetic(features=5), epsilon=0.0),
    "syn-20": MulticlassLog(Synthetic(features=20), epsilon=0.0),
}

SELECTION_TASKS: dict[str, DependentArms] = {"dependent-arms": DependentArms()}

__all__ = [
    "LOGGED_TASKS",
    "RESPONSES",
    "SELECTION_TASKS",
    "WORLDS",
    "Advertising",
    "BernoulliTask",
    "Classification",
    "ContinuousRounds",
    "ContinuousWorld",
    "Dataset",
    "DependentArms",
    "DependentSample",
    "Drifting",
    "Embedded",
    "GaussianExample",
    "Logged",
    "Margin",
    "MulticlassLog",
    "OpenML",
    "Overlap",
    "ParquetSet",
    "Pricing",
    "Response",
    "ResponseRounds",
    "SingleContext",
    "SoftmaxLogger",
    "Source",
    "Structured",
    "Synthetic",
    "SyntheticLog",
    "TableRounds",
    "Toy",
    "Waves",
    "Wheel",
    "catalogue",
    "make_dataset",
    "overlap",
]
