"""Pessimism on its own in the offline studies: λ ∈ {0, .1, 1} (and the tuned λ), clip on or off, all else equal.

Twice: O2PL with the settings of the study (baseline, control variate, l2), and the paper's objective as printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.learners import O2PL
from o2pl.simulation.rivals import MakeLearner, seeded_rival
from o2pl_reproduction.claims.intervals import Measurement
from o2pl_reproduction.claims.study import Claim, above
from o2pl_reproduction.studies import offline
from o2pl_reproduction.studies.pessimism import LearnerArms, Values, by_seed, figure_of_arms, gain, penalty_alone

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

VALUE = gain("value", "seeds", 0.005)
LETTER = LearnerArms("o2pl-paper", "the paper's objective", 1.0)
Settings = Mapping[str, tuple[Any, ...]]  # `offline.SYNTHETIC` or `offline.MULTICLASS`


def arms_of(settings: Settings) -> tuple[LearnerArms, LearnerArms]:
    """Return the arms of O2PL with these settings, and those of the paper's objective."""
    return LearnerArms("o2pl", "O2PL", settings["o2pl"][0]), LETTER


def learners(settings: Settings) -> dict[str, MakeLearner[Any]]:
    """Return the arms that are not yet learners of the study."""
    _, control, l2 = settings["o2pl"]
    tuned, letter = arms_of(settings)
    made = {
        name: seeded_rival(O2PL, policy="linear", control=control, l2=l2, **given)
        for name, given in tuned.settings().items()
    }
    return made | {name: seeded_rival(O2PL.paper, **given) for name, given in letter.settings().items()}


def labels(settings: Settings) -> dict[str, str]:
    return {name: label for arms in arms_of(settings) for name, label in arms.labels().items()}


def values(rows: Table, worlds: Iterable[str] | None = None) -> Values:
    """Return learner -> its value by seed, a mean over these worlds (or all)."""
    found = by_seed(rows, "value")
    chosen = offline.worlds_of(rows) if worlds is None else list(worlds)
    played = {learner for _, learner in found if all((world, learner) in found for world in chosen)}
    return {learner: np.mean([found[world, learner] for world in chosen], axis=0) for learner in sorted(played)}


def claims(study: str, rows: Table, settings: Settings, where: str) -> list[Claim]:
    """Return claims about penalty and clip on the average of all worlds; `where` ends the statements."""
    return [
        claim for arms in arms_of(settings) for claim in _claims(arms, f"{study}/{arms.learner}", values(rows), where)
    ]


def _claims(arms: LearnerArms, prefix: str, found: Values, where: str) -> list[Claim]:
    return [*arms.claims(prefix, found, VALUE, where), *penalty_alone(arms, prefix, found, VALUE, where)]


def claims_of_part(
    study: str, rows: Table, settings: Settings, key: str, where: str, worlds: Sequence[str]
) -> list[Claim]:
    """Return the same claims for the mean over some worlds, with the learner's own λ only."""
    made, found = [], values(rows, worlds)
    for arms in arms_of(settings):
        prefix = f"{study}/{arms.learner}-{key}"
        keys = (f"penalty-{arms.penalty:g}", "penalty-alone", "clip-alone", "pessimism")
        chosen = {f"{prefix}-{key}" for key in keys}
        made += [each for each in _claims(arms, prefix, found, where) if each.id in chosen]
    return made


def more_useful(
    study: str, rows: Table, settings: Settings, task: str, elsewhere: Sequence[str], paper: str
) -> list[Claim]:
    """Penalty and clip together gain more on one task than elsewhere: the paper's reading of its figure."""
    tuned, letter = arms_of(settings)
    present = set(rows["learner"].to_pylist())
    if not {tuned.name(0.0, False), letter.name(0.0, False)} <= present:
        return []

    def extra(arms: LearnerArms) -> Measurement:
        gained = offline.leads(rows, arms.learner, [arms.name(0.0, False)])
        return offline.extra_lead(gained, task, elsewhere)

    return [
        Claim(
            f"{study}/pessimism-most-useful-{task}",
            f"Penalty and clip together gain more on the {task} task than on {' and '.join(elsewhere)} (difference of "
            "the gains in value).",
            extra(tuned),
            above(0.0),
            "recipe",
            paper,
            literal=extra(letter),
            conditions=f"O2PL as tuned, λ = {tuned.penalty:g}, against λ = 0 without a clip",
        )
    ]


def figure(rows: Table, settings: Settings, title: str) -> Figure:
    found = values(rows)
    panels = [(arms, found) for arms in arms_of(settings)]
    return figure_of_arms(panels, "value gained over λ = 0 without a clip", title, measure=VALUE)
