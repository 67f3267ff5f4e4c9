"""A study: an experiment with claims and verdicts computed from its rows, figures and a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from o2pl.errors import InvalidInput
from o2pl.simulation.experiment import Experiment
from o2pl_reproduction.claims.intervals import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

Sense = Literal["≥", "≤", ">", "<", "in"]
Outcome = Literal["met", "missed", "open"]
Whose = Literal["paper", "recipe", "own"]
BarSource = Literal["ours", "the paper's", "our prototype's number"]
Verdict = Literal[
    "holds as stated",
    "holds in direction, weaker",
    "holds for our recipe, not for the paper's",
    "matches, does not outperform",
    "does not hold",
    "undecided",
    "our own question: yes",
    "our own question: no",
    "our own question: undecided",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
WHOSE: dict[Whose, str] = {
    "paper": "the paper's",
    "recipe": "the paper's, by our recipe",
    "own": "our own question",
}


@dataclass(frozen=True)
class Bar:
    """The bar of a figure. It is met if the whole interval clears it, missed if none of it does."""

    sense: Sense
    numbers: tuple[float, ...]  # one, or the two ends of "in"
    source: BarSource = "ours"

    def __str__(self) -> str:
        if self.sense == "in":
            return "in [{:.4g}, {:.4g}]".format(*self.numbers)
        return f"{self.sense} {self.numbers[0]:.4g}"

    def outcome(self, found: Measurement) -> Outcome:
        if not (found.low <= found.high) or math.isnan(found.value):
            return "open"
        ends = self._is_cleared(found.low), self._is_cleared(found.high)
        if all(ends):
            return "met"
        beside = self.sense == "in" and found.low < self.numbers[0] and found.high > self.numbers[1]
        return "open" if any(ends) or beside else "missed"

    def _is_cleared(self, figure: float) -> bool:
        first, last = self.numbers[0], self.numbers[-1]
        if self.sense == "in":
            return first <= figure <= last
        return {"≥": figure >= first, ">": figure > first, "≤": figure <= first, "<": figure < first}[self.sense]


def at_least(number: float, source: BarSource = "ours") -> Bar:
    return Bar("≥", (float(number),), source)


def at_most(number: float, source: BarSource = "ours") -> Bar:
    return Bar("≤", (float(number),), source)


def above(number: float, source: BarSource = "ours") -> Bar:
    return Bar(">", (float(number),), source)


def below(number: float, source: BarSource = "ours") -> Bar:
    return Bar("<", (float(number),), source)


def between(low: float, high: float, source: BarSource = "ours") -> Bar:
    return Bar("in", (float(low), float(high)), source)


@dataclass(frozen=True)
class Effect:
    """The paper's own figure, in the units of ours, and what it would be without any effect (0, or 1 for a ratio)."""

    value: float
    none: float = 0.0

    def half(self) -> Bar:
        """Return the bar of at least half of the effect."""
        middle = (self.value + self.none) / 2
        return at_least(middle) if self.value > self.none else at_most(middle)


@dataclass(frozen=True)
class Claim:
    """One statement, our figure for it with its interval, and the bar. The verdict is computed, never typed in.

    `whose`: the paper's, measured with the paper's algorithm; the paper's, measured with our recipe, where `literal` is
    the same figure by the paper's algorithm; or our own question. `conditions` says what was set that the paper leaves
    open or does otherwise. `match` is a weaker bar: where the figure clears only that, it matches and does not
    outperform.
    """

    id: str  # such as "dependence/ratio-n150"
    claim: str  # the statement, in a sentence
    measured: Measurement
    bar: Bar
    whose: Whose
    paper: str | None = None  # what the paper says, in its words or figures
    effect: Effect | None = None
    literal: Measurement | None = None
    match: Bar | None = None
    conditions: str = ""

    def __post_init__(self) -> None:
        if (self.whose == "recipe") != (self.literal is not None):
            raise InvalidInput(
                f"{self.id}: literal: found it for a claim of whose={self.whose!r}, or none for 'recipe'"
            )

    @property
    def experiment(self) -> str:
        return self.id.partition("/")[0]

    @property
    def outcome(self) -> Outcome:
        """The outcome of our figure and the bar alone."""
        return self.bar.outcome(self.measured)

    @property
    def verdict(self) -> Verdict:
        return self._decided()[0]

    @property
    def reason(self) -> str:
        """The reason of the verdict, if the figure and the bar alone do not explain it."""
        return self._decided()[1]

    def _decided(self) -> tuple[Verdict, str]:
        if self.whose == "own":
            if self.outcome == "open":
                return "our own question: undecided", self._why_open()
            return ("our own question: yes" if self.outcome == "met" else "our own question: no"), ""
        if self.outcome != "met" and self.match is not None and self.match.outcome(self.measured) == "met":
            return "matches, does not outperform", f"the interval clears {self.match}"
        if self.outcome == "missed":
            return "does not hold", ""
        if self.outcome == "open":
            return "undecided", self._why_open()
        if self.literal is not None and self.bar.outcome(self.literal) != "met":
            return "holds for our recipe, not for the paper's", f"by the paper's algorithm: {figure_text(self.literal)}"
        if self.effect is not None:
            half = self.effect.half().outcome(self.measured)
            if half == "missed":
                return "holds in direction, weaker", "less than half of the paper's effect"
            if half == "open":
                return "undecided", "it clears the bar, but the interval straddles half of the paper's effect"
        return "holds as stated", ""

    def _why_open(self) -> str:
        if math.isnan(self.measured.value):
            return "nothing was measured"
        if not self.measured.is_bounded:
            return self.measured.method
        return "the interval straddles the bar"


_WIDE = 100  # from this width of an interval on, numbers have no decimals
_DECIMALS = 7  # beyond, numbers are written as powers of ten


def number_text(value: float) -> str:
    """Format a number with at most four digits."""
    if math.isnan(value):
        return "–"
    return f"{value:.4g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}"


def figure_text(found: Measurement) -> str:
    """Format an estimate and its interval, with two digits of the interval's width: 0.001 [-0.009, 0.010]."""
    if found.low == found.high:
        return f"{number_text(found.value)} exact"
    if not found.is_bounded:
        return f"{number_text(found.value)} unbounded"
    width = found.high - found.low
    decimals = max(0 if width >= _WIDE else 1, 1 - math.floor(math.log10(width)))
    ends = [end for end in (found.low, found.high) if end]
    while any(float(f"{end:.{decimals}f}") == 0 for end in ends):  # only 0 is shown as 0: the bar may be there
        decimals += 1
    if decimals > _DECIMALS:
        return f"{number_text(found.value)} [{found.low:.3g}, {found.high:.3g}]"
    value, low, high = (f"{number:z,.{decimals}f}" for number in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


@dataclass(frozen=True)
class Study:
    """An experiment with its claims, figures and table, all made from the rows."""

    experiment: Experiment
    title: str
    claim: str  # what the paper claims, in a sentence or two
    settings: tuple[str, ...]  # what was run, and what the paper leaves open: one item of a list each
    claims: Callable[[Table], Sequence[Claim]]  # of the table of rows
    figures: Callable[[Table], Mapping[str, Figure]]  # by file stem
    table: Callable[[Table], Sequence[Mapping[str, str]]]  # rows of the report's table, column -> text
    headline: str = ""  # the claim that README shows; none where empty
