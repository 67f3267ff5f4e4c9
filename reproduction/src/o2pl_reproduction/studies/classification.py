"""Classification data sets as bandits: the learner picks a class and learns only whether it was right."""

from __future__ import annotations

from collections.abc import Sequence

from o2pl.learners import O2PL
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.rivals import RIVALS
from o2pl.simulation.units import COLUMNS, crossed_units, o2pl, play_unit, world_of
from o2pl.simulation.worlds import WORLDS, Classification, ParquetSet, catalogue

EMBEDDED = ("iris", "wine", "breast-cancer", "digits")
HALVES = ("tuning", "confirmation")  # data sets at even and at odd positions of a folder's catalogue
_RIVALS = ("uniform", "linucb", "greedy-ridge", "vw-greedy", "vw-cover", "vw-bag", "vw-regcb")
LEARNERS = {
    "o2pl": o2pl(),
    "o2pl-linear": o2pl(policy="linear"),
    "paper-replay": o2pl(O2PL.paper_replay),
    **{name: RIVALS[name] for name in _RIVALS},
}


def cells(data: str | None) -> Sequence[Cell]:
    """Return the embedded data sets, then those of the data folder (another folder gives another table)."""
    own = {} if data is None else {name: Classification(ParquetSet(set_.id)) for name, set_ in catalogue(data).items()}
    return crossed_units({name: WORLDS[name] for name in EMBEDDED} | own, LEARNERS)


def run_unit(unit: Unit) -> Columns:
    return play_unit(world_of(unit), LEARNERS, unit)


CLASSIFICATION = Experiment(
    name="classification",
    summary="Learners on classification sets with bandit feedback (embedded ones, and those of --data).",
    sizes={
        "quick": Size(rounds=1000, seeds=2, datasets=EMBEDDED),
        "full": Size(rounds=10_000, seeds=10),
    },
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="mean_reward",
)
