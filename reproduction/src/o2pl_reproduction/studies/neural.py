"""Neural policies compared with the default learner and with boosted trees as a reward model.

The sets are large ones of the confirmation half, on which nothing was tuned, and a synthetic world whose best action is
no quadratic of the context. The networks' settings were chosen on sets of the tuning half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from o2pl.learners import Bandit
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.rivals import seeded_rival
from o2pl.simulation.rivals.trees import BoostedTrees
from o2pl.simulation.units import COLUMNS, crossed_units, o2pl, play_unit, world_of
from o2pl.simulation.worlds import WORLDS, Classification, ParquetSet, catalogue
from o2pl.special import student_quantile
from o2pl_reproduction.claims.summary import final_values

if TYPE_CHECKING:
    from pyarrow import Table

SETS = (6, 28, 150)  # letter, optdigits, covertype
LEARNERS = {
    "bandit": seeded_rival(Bandit),
    "bandit-neural": seeded_rival(Bandit, policy="neural"),
    "o2pl": o2pl(),
    "o2pl-neural": o2pl(policy="neural"),
    "boosted-trees": seeded_rival(BoostedTrees, epsilon=0.1),  # the best of four settings in `structures`
}


def cells(data: str | None) -> Sequence[Cell]:
    found = {} if data is None else {name: each.id for name, each in catalogue(data).items() if each.id in SETS}
    sets = {name: Classification(ParquetSet(number)) for name, number in found.items()}
    return crossed_units({"waves": WORLDS["waves"]} | sets, LEARNERS)


def run_unit(unit: Unit) -> Columns:
    return play_unit(world_of(unit), LEARNERS, unit)


def table(rows: Table) -> list[str]:
    """Return a Markdown table: mean reward of each learner in each world, and its lead over the default, ± 95 %."""
    values = final_values(rows, "mean_reward")
    worlds = list(dict.fromkeys(rows["world"].to_pylist()))
    lines = [f"| | {' | '.join(worlds)} |", "|" + "---|" * (len(worlds) + 1)]
    for name in LEARNERS:
        said = []
        for world in worlds:
            own, default = values.get((world, name), np.empty(0)), values[world, "bandit"]
            lead, n = own - default[: len(own)], len(own)
            half = student_quantile(0.975, n - 1) * lead.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
            beside = f" ({lead.mean():+.3f} ± {half:.3f}, {n} seeds)" if name != "bandit" and n else ""
            said.append(f"{own.mean():.3f}{beside}" if n else "")
        lines.append(f"| {name} | {' | '.join(said)} |")
    return lines


NEURAL = Experiment(
    name="neural",
    summary="Neural policies beside linear ones and boosted trees (a synthetic world, and large sets of --data).",
    sizes={"quick": Size(rounds=2000, seeds=2, datasets=("waves",)), "full": Size(rounds=4000, seeds=3)},
    cells=cells,
    run=run_unit,
    columns=COLUMNS,
    headline="mean_reward",
)
