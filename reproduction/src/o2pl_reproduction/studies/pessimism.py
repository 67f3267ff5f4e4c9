"""Pessimism on its own: one learner with and without the penalty and the clip, all else equal.

An arm is the learner with its penalty λ ∈ {0, 0.1, 1} and its clip on or off. Every other setting, the rounds and the
seeds are those of the learner. `Arms.settings` makes the arms, `Arms.claims` asks what penalty and clip are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.protocols import Floats
from o2pl.simulation.figures import STYLES
from o2pl_reproduction.claims.intervals import Measurement, mean, not_run, ratio
from o2pl_reproduction.claims.study import Claim, above, between, number_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

PENALTIES = (0.0, 0.1, 1.0)  # λ; 1 in the paper
Given = Mapping[str, Any]  # arguments of a learner's constructor
Values = Mapping[str, Floats]  # learner -> a figure (or several) of each unit, [units] or [units, m]; NaN: not played


@dataclass(frozen=True)
class Measure:
    """Comparison of one arm with another, on common units."""

    name: str  # such as "mean reward"
    says: str  # such as "mean reward with it minus mean reward without it"
    compare: Callable[[Floats, Floats], Measurement]  # (with, without), paired by unit
    none: float  # value of `compare` without an effect: 0, or 1 for a ratio
    negligible: float  # smaller effects do not matter


def gain(name: str, over: str, negligible: float) -> Measure:
    """Return a measure for quantities that should be high, such as rewards."""
    return Measure(name, f"{name} with minus without", lambda own, other: mean(own - other, over), 0.0, negligible)


def times_less(name: str, over: str, negligible: float) -> Measure:
    """Return a measure for quantities that should be low, such as regret."""
    return Measure(
        name, f"{name} without over {name} with", lambda own, other: ratio(other, own, over), 1.0, negligible
    )


@dataclass(frozen=True)
class LearnerArms:
    """The arms of one learner."""

    learner: str  # its name among the rows: the arm that has the learner's own penalty and clip
    label: str  # name in claims and figures
    penalty: float  # its own λ, tried in addition to `PENALTIES`
    clip: float | str = "theory"  # the level where the clip is on
    is_clipped: bool = True  # whether it is on for the learner as it is

    @property
    def penalties(self) -> tuple[float, ...]:
        return tuple(sorted({*PENALTIES, self.penalty}))

    def name(self, penalty: float, clip: bool) -> str:
        if (penalty, clip) == (self.penalty, self.is_clipped):
            return self.learner
        return f"{self.learner}-penalty-{penalty:g}-{'clip' if clip else 'no-clip'}"

    @property
    def names(self) -> dict[str, tuple[float, bool]]:
        """Return arm -> its λ, and whether it is clipped; includes the learner itself."""
        return {
            self.name(penalty, clip): (penalty, clip) for clip in (True, False) for penalty in self.penalties
        }  # fmt: skip

    def settings(self) -> dict[str, Given]:
        """Return arm -> its changed settings, without the learner itself."""
        return {
            name: {"penalty": penalty, "clip": self.clip if clip else None}
            for name, (penalty, clip) in self.names.items()
            if name != self.learner
        }

    def labels(self) -> dict[str, str]:
        """Return arm -> its label, without the learner itself."""
        return {
            name: f"{self.label}, λ = {penalty:g}, {'clip' if clip else 'no clip'}"
            for name, (penalty, clip) in self.names.items()
            if name != self.learner
        }

    def effect(
        self, values: Values, measure: Measure, own: tuple[float, bool], other: tuple[float, bool]
    ) -> Measurement:
        """Return the gain of one arm (λ, clip) over the other."""
        both = [values.get(self.name(*each)) for each in (own, other)]
        if both[0] is None or both[1] is None:
            return not_run()
        played = [np.isfinite(each.reshape(len(each), -1)).all(axis=1) for each in (both[0], both[1])]
        paired = played[0] & played[1]
        return measure.compare(both[0][paired], both[1][paired]) if paired.any() else not_run()

    def claims(self, prefix: str, values: Values, measure: Measure, where: str = "") -> list[Claim]:
        """What penalty and clip are worth to this learner. None where no arm was played.

        `prefix` begins the claims' ids, such as "bakeoff/o2pl"; `where` ends the statements, such as " on the wheel".
        """
        if not any(name in values for name in self.settings()):
            return []
        mine, says, clip = self.penalty, measure.says, self.is_clipped

        def found(key: str, text: str, own: tuple[float, bool], other: tuple[float, bool]) -> Claim:
            measured = self.effect(values, measure, own, other)
            return Claim(f"{prefix}-{key}", text, measured, above(measure.none), "own", conditions=CONDITIONS)

        made = [
            found(
                f"penalty-{penalty:g}",
                f"The penalty helps {self.label}{where}: {says}, λ = {penalty:g} against λ = 0.",
                (penalty, clip),
                (0.0, clip),
            )
            for penalty in self.penalties
            if penalty > 0
        ]
        if mine > 0:
            text = f"The clip helps {self.label}{where}: {says}, λ = {mine:g}."
            made.append(found("clip", text, (mine, True), (mine, False)))
        text = f"The clip alone helps {self.label}{where}: {says}, λ = 0."
        made.append(found("clip-alone", text, (0.0, True), (0.0, False)))
        most = mine if mine > 0 else max(PENALTIES)
        both = f"λ = {most:g} and the clip against neither"
        text = f"Penalty and clip together help {self.label}{where}: {says}, {both}."
        together = found("pessimism", text, (most, True), (0.0, False))
        bar = between(measure.none - measure.negligible, measure.none + measure.negligible)
        text = (
            f"Penalty and clip together change the {measure.name} of {self.label}{where} by less than "
            f"{number_text(measure.negligible) if measure.none == 0 else f'{measure.negligible:.0%}'}: {says}, {both}."
        )
        small = Claim(f"{prefix}-negligible", text, together.measured, bar, "own", conditions=CONDITIONS)
        return [*made, together, small]


CONDITIONS = "all arms play the same rounds; nothing differs but the penalty's weight λ and the clip"


def penalty_alone(arms: LearnerArms, prefix: str, values: Values, measure: Measure, where: str = "") -> list[Claim]:
    """What the learner's own penalty is worth where nothing is clipped. None where no arm was played."""
    if not any(name in values for name in arms.settings()):
        return []
    text = f"The penalty alone helps {arms.label}{where}: {measure.says}, λ = {arms.penalty:g} against λ = 0, no clip."
    found = arms.effect(values, measure, (arms.penalty, False), (0.0, False))
    return [Claim(f"{prefix}-penalty-alone", text, found, above(measure.none), "own", conditions=CONDITIONS)]


def by_seed(rows: Table, column: str) -> dict[tuple[str, str], Floats]:
    """(world, learner) -> the last value of `column`, by seed; NaN where it has not played a seed that others have."""
    seeds = {int(seed): place for place, seed in enumerate(np.unique(np.asarray(rows["seed"])))}
    found: dict[tuple[str, str], Floats] = {}
    columns = (rows[name].to_pylist() for name in ("world", "learner", "seed", column))
    for world, learner, seed, value in zip(*columns, strict=True):
        found.setdefault((world, learner), np.full(len(seeds), np.nan))[seeds[seed]] = value
    return found


def figure_of_arms(
    panels: Sequence[tuple[LearnerArms, Values]],
    ylabel: str,
    title: str,
    log: bool = False,
    measure: Measure | None = None,
) -> Figure:
    """Draw each learner's arms, λ from left to right, with and without the clip.

    With a measure: what each arm gains over neither penalty nor clip, with its interval. Without: the mean over units
    ± 2 standard errors, in which lies also what units have in common.
    """
    figure = new_figure(3.6 * len(panels) + 0.6, 3.9)
    drawn = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (arms, values) in zip(drawn, panels, strict=True):
        for (clip, label), (colour, line) in zip(((True, "clip"), (False, "no clip")), STYLES, strict=False):
            shown = [(x, arm) for x, arm in enumerate(_row(arms, clip)) if arms.name(*arm) in values]
            x = np.array([place for place, _ in shown]) + (-0.06 if clip else 0.06)  # so that bars do not overlap
            ends = np.array([_ends(arms, values, arm, measure) for _, arm in shown]).reshape(-1, 3)
            errors = [ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 0]]
            axes.errorbar(
                x, ends[:, 0], errors, color=colour, linestyle=line, marker="os"[not clip], capsize=3, label=label
            )
        if measure is not None:
            axes.axhline(measure.none, color="#888888", linewidth=0.8, zorder=0)
        axes.set_xticks(range(len(arms.penalties)), [f"{each:g}" for each in arms.penalties])
        axes.set_xlabel("penalty λ")
        axes.set_title(arms.label, loc="left", fontsize=11)
        if log:
            axes.set_yscale("log")
        tidy(axes, "y")
    drawn[0].set_ylabel(ylabel)
    drawn[0].legend(frameon=False, fontsize=9)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def _row(arms: LearnerArms, clip: bool) -> list[tuple[float, bool]]:
    return [(penalty, clip) for penalty in arms.penalties]


def _ends(
    arms: LearnerArms, values: Values, arm: tuple[float, bool], measure: Measure | None
) -> tuple[float, float, float]:
    """Return height, lower and upper end."""
    own = values[arms.name(*arm)]
    if measure is None:
        height, error = float(np.nanmean(own)), _error(own)
        return height, height - 2 * error, height + 2 * error
    found = arms.effect(values, measure, arm, (0.0, False))
    return (found.value, found.low, found.high) if found.is_bounded else (found.value, found.value, found.value)


def _error(values: Floats) -> float:
    units = np.nanmean(values.reshape(len(values), -1), axis=1)
    units = units[np.isfinite(units)]
    return float(units.std(ddof=1) / np.sqrt(len(units))) if len(units) > 1 else 0.0
