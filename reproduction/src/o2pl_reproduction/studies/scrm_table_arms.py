"""Pessimism on its own in the SCRM table: O2PL on losses as they are with λ ∈ {0, .1, 1}, clip on or off.

Losses of the continuous worlds are on scales of their own, so they are divided by the paper's loss of SCRM there; the
0-1 losses of the classification sets are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from o2pl.protocols import Floats
from o2pl_reproduction.claims.intervals import mean
from o2pl_reproduction.claims.study import Claim
from o2pl_reproduction.studies.pessimism import Measure, Values, by_seed, figure_of_arms, penalty_alone
from o2pl_reproduction.studies.scrm_table import ARMS, CONTINUOUS, DISCRETE, SCHEMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

Scales = Mapping[str, float]  # world -> what its loss is divided by


def _spared(unit: str) -> Measure:
    return Measure("loss", f"{unit} without minus with", lambda own, other: mean(other - own, "seeds"), 0.0, 0.005)


# key -> (where, the unit of the loss)
GROUPS = {
    "continuous": ("on Pricing, Advertising and Toy", "loss (divided by the paper's loss of SCRM)"),
    "syn-01": ("on Syn-5 and Syn-20 with losses {0, 1}", "0-1 loss"),
    "syn-10": ("on Syn-5 and Syn-20 with losses {-1, 0}", "0-1 loss"),
}


def worlds(group: str) -> list[str]:
    if group == "continuous":
        return [f"{name}-{scheme}" for scheme in SCHEMES for name in CONTINUOUS]
    return [f"{name}-{group.removeprefix('syn-')}-{scheme}" for scheme in SCHEMES for name in DISCRETE]


def values(rows: Table, group: str, scales: Scales) -> Values:
    """Learner -> its final loss, a mean over the group's worlds that are among the rows, by seed."""
    found = by_seed(rows, "loss")
    present = {world for world, _ in found}
    chosen = [world for world in worlds(group) if world in present]

    def average(learner: str) -> Floats:
        return np.asarray(np.mean([found[world, learner] / scales.get(world, 1.0) for world in chosen], axis=0))

    return {
        learner: average(learner)
        for learner in ARMS.names
        if chosen and all((world, learner) in found for world in chosen)
    }


def claims(rows: Table, scales: Scales) -> list[Claim]:
    made = []
    for group, (where, unit) in GROUPS.items():
        said = (f"scrm-table/{group}", values(rows, group, scales), _spared(unit), f" {where}")
        made += [*ARMS.claims(*said), *penalty_alone(ARMS, *said)]
    return made


def figure(rows: Table, scales: Scales) -> Figure | None:
    """How much less each arm loses than λ = 0 without a clip; None where that was not run."""
    panels = []
    for group, (where, _) in GROUPS.items():
        found = values(rows, group, scales)
        if ARMS.name(0.0, False) in found:
            panels.append((replace(ARMS, label=where.removeprefix("on ").replace(" with ", ",\n")), found))
    if not panels:
        return None
    title = (
        "Pessimism alone: loss spared by penalty and clip (95 % intervals; left: shares of the paper's loss of SCRM)"
    )
    return figure_of_arms(panels, "loss spared against λ = 0, no clip", title, measure=_spared("loss"))
