"""The wheel bandit: a safe action, and rare contexts at the rim where another one pays forty times as much."""

from __future__ import annotations

from collections.abc import Sequence

from o2pl.environments import Wheel
from o2pl.experiments.comparison import COLUMNS, cells, compare, o2pl, world_of
from o2pl.experiments.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.learners import O2PL, Replay
from o2pl.learners.rivals import RIVALS

WORLDS = {f"delta-{delta:g}": Wheel(delta=delta) for delta in (0.5, 0.7, 0.9, 0.95, 0.99)}
# The paper compares with LinUCB and LinTS without an intercept; with one the picture is another.
_RIVALS = ("uniform", "linucb", "linucb-no-intercept", "lints", "lints-no-intercept")
LEARNERS = {
    "o2pl": o2pl(),
    "o2pl-linear": o2pl(policy="linear"),
    "paper-replay": o2pl(O2PL.paper_replay, update=Replay(warm_start=200)),  # with fewer it may never see the rim
    **{name: RIVALS[name] for name in _RIVALS},
}


def table(data: str | None) -> Sequence[Cell]:
    return cells(WORLDS, LEARNERS)


def run(unit: Unit) -> Columns:
    return compare(world_of(unit), LEARNERS, unit)


WHEEL = Experiment(
    name="wheel",
    summary="Regret where high rewards are rare and no linear model of the reward is right (the paper has delta 0.95).",
    sizes={
        "quick": Size(rounds=2000, seeds=2, datasets=("delta-0.5", "delta-0.95")),
        "full": Size(rounds=10_000, seeds=10),
    },
    cells=table,
    run=run,
    columns=COLUMNS,
    headline="regret",
)
