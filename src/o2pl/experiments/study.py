"""What an experiment of the paper says: its claims with verdicts computed from the rows, its figures and its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from o2pl.experiments.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

ClaimVerdict = Literal["reproduced", "reproduced under conditions", "not reproduced"]


@dataclass(frozen=True)
class Claim:
    """One statement of the paper (or one bar of our own), our figure for it, and whether the figure meets the bar.

    `conditions` says what had to be set that the paper leaves open or does otherwise; with it, a bar that is met is met
    under conditions. The verdict follows from `met` and `conditions` alone: it is never typed in.
    """

    id: str  # such as "dependence/ratio-n150"
    claim: str  # the statement, in a sentence
    paper: float | str | None  # the paper's own figure, where it gives one
    measured: float
    bar: str  # what `measured` is held against, such as "≥ 2.5"
    met: bool
    conditions: str = ""

    @property
    def experiment(self) -> str:
        return self.id.partition("/")[0]

    @property
    def verdict(self) -> ClaimVerdict:
        if not self.met:
            return "not reproduced"
        return "reproduced under conditions" if self.conditions else "reproduced"


def at_least(measured: float, bar: float) -> tuple[float, str, bool]:
    """(measured, bar, met) of a claim that wants a large figure."""
    return float(measured), f"≥ {bar:g}", bool(measured >= bar)


def at_most(measured: float, bar: float) -> tuple[float, str, bool]:
    return float(measured), f"≤ {bar:g}", bool(measured <= bar)


@dataclass(frozen=True)
class Study:
    """An experiment with what is to be read off its rows. Everything is made from the rows alone."""

    experiment: Experiment
    title: str
    claim: str  # what the paper claims, in a sentence or two
    settings: str  # what was run, and what the paper leaves open, in a few sentences
    claims: Callable[[Table], Sequence[Claim]]  # of the table of rows
    figures: Callable[[Table], Mapping[str, Figure]]  # by file stem
    table: Callable[[Table], Sequence[Mapping[str, str]]]  # rows of the report's table, column -> text
