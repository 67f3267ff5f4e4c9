"""Safe improvement: learn a better policy than the incumbent from the incumbent's noisy log.

Worlds are classification data sets with one of four kinds of incumbents. A unit fits one learner to logs of several
lengths and evaluates the deployed policy exactly on held-out rows. A learner that does not deploy keeps the incumbent,
and has the incumbent's value.

Sets are counted from 0 in the order of the folder's catalogue (the manifest's): settings were chosen on even
positions and seeds from 1000; odd positions and seeds from 0 are the confirmation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.learners.improvement_candidates import random_loss_for_improvement_candidates
from o2pl.learners.incumbent import SafeImprovement, clone_of_incumbent, improved_incumbent
from o2pl.objectives.control import ridge_control
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.policies import Softmax
from o2pl.protocols import Floats, Ints
from o2pl.simulation.description import OF_THE_RUN, Description, described
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.rivals import MakeLearner, seeded_rival, seedless_rival
from o2pl.simulation.rivals.lower_bound import GuardedLowerBound, LowerBound, SelfNormalised
from o2pl.simulation.rivals.reductions import DirectMethod, LinearScores
from o2pl.simulation.units import world_of
from o2pl.simulation.worlds.datasets import Embedded, ParquetSet, catalogue
from o2pl.simulation.worlds.incumbents import IncumbentLog
from o2pl.storage import encode_for_storage
from o2pl_reproduction.studies.classification import HALVES
from o2pl_reproduction.studies.pessimism import LearnerArms

COLUMNS = {
    "logger": "string",
    "set": "string",
    "n": "int64",  # rows asked for
    "log_rows": "int64",  # rows there were
    "value": "double",  # of what is deployed
    "incumbent": "double",
    "incumbent_greedy": "double",  # the incumbent without its exploration: its most likely action
    "oracle": "double",
    "deployed": "bool",
    "learned": "double",  # the value of what was learned, deployed or not (where "safe" refuses: of its clone)
    "lower": "double",  # the bound on its gain over the incumbent, of those who have one
}
LOG_SIZES = (300, 1000, 4000)
FILLED = 0.6  # a data set is used for a log length if it has this fraction of the rows
LEAST_ROWS = 900  # of a set of the folder
LOGGERS: dict[str, dict[str, Any]] = {
    "good": {},
    "mediocre": {"logger_rows": 20},
    "blind": {"hidden": 0.67},
    "swapped": {"swapped": 0.5},
}
EMBEDDED_SETS = {"breast-cancer": Embedded("breast_cancer"), "digits": Embedded("digits")}


# -- learners


@dataclass(eq=False, repr=False)
class FromClone(LinearScores):
    """O2PL's objective with fixed settings, started at a clone of the logger; deploys its most likely action.

    With a `control` variate and no penalty it is DR, with leave-one-out models.
    """

    _: KW_ONLY
    penalty: float = 1.0
    clip: str | None = "theory"
    baseline: Literal["random", "mean", "half", "zero"] = "random"
    control: float | None = None

    def _solve(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> None:
        mean = -float(rewards.mean())
        level = {
            "random": random_loss_for_improvement_candidates(-rewards, propensities),
            "mean": mean,
            "half": mean / 2,
            "zero": 0.0,
        }
        objective = Pessimistic(self.penalty, self.clip, level[self.baseline], self.l2)
        policy = Softmax(self.n_actions)
        rows = Interactions.trusted(features, actions, rewards, propensities, (0.0, 1.0), self.n_actions)
        model = None
        if self.control is not None:
            losses = rows.losses
            model = ridge_control(features, actions, losses, self.n_actions, objective.level(losses), self.control)
        params = improved_incumbent(
            policy, features, rows, objective, clone_of_incumbent(policy, features, actions), model
        )
        self._weights = params.reshape(self.n_actions, -1)


class Clone(LinearScores):
    """The most likely action of a clone of the logger: nothing is learned from rewards."""

    def _solve(self, features: Floats, actions: Ints, rewards: Floats, propensities: Floats) -> None:
        self._weights = clone_of_incumbent(Softmax(self.n_actions), features, actions).reshape(self.n_actions, -1)


ARMS = LearnerArms("clip-penalty", "O2PL from a clone", 1.0)  # λ × clip, all else equal
# Arms with other names than those given by `ARMS`.
NAMED_ARMS = {"clip": ARMS.name(0.0, True), "penalty": ARMS.name(1.0, False), "neither": ARMS.name(0.0, False)}
NEW_ARMS = {name: given for name, given in ARMS.settings().items() if name not in NAMED_ARMS.values()}
# All settings were chosen on the tuning half, seeds from 1000, for the mean over loggers and sizes; then left alone.
# The arms and the paper's objective were not tuned.
LEARNERS: dict[str, MakeLearner[Any]] = {
    "safe": seeded_rival(SafeImprovement),
    "clip-penalty": seedless_rival(FromClone, l2=0.1),
    "clip": seedless_rival(FromClone, penalty=0.0, l2=0.1),
    "penalty": seedless_rival(FromClone, clip=None, l2=0.1),
    "neither": seedless_rival(FromClone, penalty=0.0, clip=None, l2=0.1),
    "bold": seedless_rival(FromClone, penalty=0.3),
    "careful": seedless_rival(FromClone, penalty=3.0),
    "half-mean": seedless_rival(FromClone, baseline="half", l2=0.1),
    "plain": seedless_rival(FromClone, baseline="mean", penalty=0.0, clip=None, l2=0.01),
    "clone": seedless_rival(Clone),
    "ipw": seedless_rival(FromClone, baseline="zero", penalty=0.0, clip=None, l2=0.01),
    "snips": seedless_rival(SelfNormalised, l2=100.0),
    "dr": seedless_rival(FromClone, baseline="zero", penalty=0.0, control=100.0, l2=0.1),
    "dm": seedless_rival(DirectMethod, level=0.0, l2=30.0),
    "lcb": seedless_rival(LowerBound),
    "lcb-wide": seedless_rival(LowerBound, width=4.0),
    "lcb-guarded": seeded_rival(GuardedLowerBound),
    **{name: seedless_rival(FromClone, l2=0.1, **given) for name, given in NEW_ARMS.items()},
    "paper": seedless_rival(FromClone, baseline="zero", l2=1e-9),  # as printed: λ = 1, b = 0, practically no l2
}
LABELS = {
    "safe": "O2PL, safe improvement",
    "clip-penalty": "clip and penalty",
    "clip": "clip alone",
    "penalty": "penalty alone",
    "neither": "no penalty, no clip",
    "bold": "λ = 0.3, clip",
    "careful": "λ = 3, clip",
    "half-mean": "b half the mean, λ = 1, clip",
    "plain": "plain: b the mean, λ = 0, no clip",
    "clone": "clone, its most likely action",
    "ipw": "IPW",
    "snips": "SNIPS",
    "dr": "DR, clipped",
    "dm": "DM",
    "lcb": "LCB, best on average",
    "lcb-wide": "LCB, best for good incumbents",
    "lcb-guarded": "LCB, chosen and guarded",
    **{name: label.removeprefix(f"{ARMS.label}, ") for name, label in ARMS.labels().items() if name in NEW_ARMS},
    "paper": "as printed: b = 0, λ = 1, clip",
}


def _describe(name: str) -> Description:
    return described(name, LEARNERS[name](2, None), OF_THE_RUN)


# -- units


def cells(data: str | None) -> Sequence[Cell]:
    """Return the embedded data sets, or the folder's large ones, with every kind of incumbent and every learner."""
    return [
        Cell(
            {"name": f"{logger}/{name}", "half": half, "world": encode_for_storage(IncumbentLog(source, **kind))},
            learner,
        )
        for name, (half, source) in _sets(data).items()
        for logger, kind in LOGGERS.items()
        for learner in map(_describe, LEARNERS)
    ]


@cache
def _sets(data: str | None) -> dict[str, tuple[str, Any]]:
    """Return name -> (half, source)."""
    if data is None:
        return {name: ("embedded", source) for name, source in EMBEDDED_SETS.items()}
    return {
        name: (HALVES[position % 2], ParquetSet(source.id))  # its location is not a setting
        for position, (name, source) in enumerate(catalogue(data).items())
        if len(source.load()) >= LEAST_ROWS
    }


def _half(half: str) -> Callable[[str | None], Sequence[str]]:
    def names(data: str | None) -> Sequence[str]:
        wanted = "embedded" if data is None else half
        return [f"{logger}/{name}" for name, (own, _) in _sets(data).items() if own == wanted for logger in LOGGERS]

    return names


def run_unit(unit: Unit) -> Columns:
    unit.check_learner(_describe(unit.learner["name"]))
    world: IncumbentLog = world_of(unit)
    lines = [_line(unit, world, n) for n in LOG_SIZES if n <= unit.rounds and world.log_rows >= FILLED * n]
    return {name: [line[name] for line in lines] for name in COLUMNS}


def _line(unit: Unit, world: IncumbentLog, n: int) -> dict[str, Any]:
    chance, choice = np.random.SeedSequence([unit.seed, n]).spawn(2)  # the log's, the same for all; the learner's
    logged = world.log(n, np.random.default_rng(chance))
    log = logged.interactions
    learner = LEARNERS[unit.learner["name"]](world.n_actions, int(choice.generate_state(1)[0]))
    learner.fit(*log)
    deployed = bool(getattr(learner, "deploy_", True))
    learned = logged.value(learner.predict_proba(logged.contexts)) if deployed else logged.logger_value
    logger, _, name = unit.world["name"].partition("/")
    return {
        "logger": logger,
        "set": name,
        "n": n,
        "log_rows": len(log),
        "value": learned if deployed else logged.logger_value,
        "incumbent": logged.logger_value,
        "incumbent_greedy": logged.value(np.eye(world.n_actions)[logged.logging_there.argmax(axis=1)]),
        "oracle": logged.oracle_value,
        "deployed": deployed,
        "learned": learned,
        "lower": learner.verdict_.lower if hasattr(learner, "verdict_") else np.nan,
    }


EXPERIMENT = Experiment(
    name="safe-improvement",
    summary="Improving an incumbent from its own noisy log, on the sets of --data (or embedded ones): value and harm.",
    sizes={
        "quick": Size(rounds=1000, seeds=1, datasets=_half("confirmation")),
        "full": Size(rounds=4000, seeds=3, datasets=_half("confirmation")),
        "tuning": Size(rounds=4000, seeds=1, datasets=_half("tuning")),
    },
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="value",
)
