"""Verdicts follow from figure, interval, bar and whose claim it is."""

from __future__ import annotations

import math
from typing import Any

import pytest

from o2pl.errors import InvalidInput
from o2pl_reproduction.claims.intervals import Measurement, exact
from o2pl_reproduction.claims.study import (
    VERDICTS,
    Bar,
    Claim,
    Effect,
    above,
    at_least,
    at_most,
    below,
    between,
    figure_text,
)


def found(low: float, high: float, value: float | None = None) -> Measurement:
    return Measurement((low + high) / 2 if value is None else value, low, high, "bootstrap over 9 seeds")


def claim(measured: Measurement, bar: Bar, whose: Any = "paper", **more: Any) -> Claim:
    return Claim("wheel/x", "It is so.", measured, bar, whose, **more)


@pytest.mark.parametrize(
    ("bar", "met", "missed", "open_"),
    [
        (at_least(1), (1, 2), (0, 0.99), (0.5, 1.5)),
        (above(1), (1.01, 2), (0, 1), (1, 2)),
        (at_most(1), (0, 1), (1.01, 2), (0.5, 1.5)),
        (below(1), (0, 0.99), (1, 2), (0, 1)),
        (between(1, 2), (1, 2), (2.1, 3), (0, 3)),
        (between(1, 2), (1.2, 1.4), (0, 0.9), (0.9, 1.5)),
    ],
)
def test_a_bar_is_met_where_the_whole_interval_clears_it(bar: Bar, met: Any, missed: Any, open_: Any) -> None:
    assert bar.outcome(found(*met)) == "met"
    assert bar.outcome(found(*missed)) == "missed"
    assert bar.outcome(found(*open_)) == "open"
    assert bar.outcome(found(-math.inf, math.inf, 1.5)) == "open"
    assert bar.outcome(Measurement(math.nan, math.nan, math.nan, "none")) == "open"


def test_verdicts_of_the_papers_claims() -> None:
    assert claim(found(1.2, 2), at_least(1)).verdict == "holds as stated"
    assert claim(found(0.2, 0.9), at_least(1)).verdict == "does not hold"
    assert claim(found(0.2, 2), at_least(1)).verdict == "undecided"
    assert claim(found(0.2, 2), at_least(1)).reason == "the interval straddles the bar"
    assert claim(exact(1), at_least(1)).verdict == "holds as stated"
    assert claim(Measurement(math.nan, -math.inf, math.inf, "not run"), at_least(1)).reason == "nothing was measured"


def test_less_than_half_of_the_papers_effect_is_weaker() -> None:
    effect = Effect(-0.4)
    assert claim(found(-0.5, -0.25), below(0), effect=effect).verdict == "holds as stated"
    assert claim(found(-0.19, -0.1), below(0), effect=effect).verdict == "holds in direction, weaker"
    assert claim(found(-0.3, -0.1), below(0), effect=effect).verdict == "undecided"  # which of the two, is open
    assert claim(found(0.1, 0.2), below(0), effect=effect).verdict == "does not hold"
    ratio = Effect(3.0, none=1.0)
    assert claim(found(2.1, 2.5), above(1), effect=ratio).verdict == "holds as stated"
    assert claim(found(1.1, 1.5), above(1), effect=ratio).verdict == "holds in direction, weaker"


def test_a_recipe_is_held_beside_the_papers_algorithm() -> None:
    ours = found(1, 2)
    assert claim(ours, above(0), "recipe", literal=found(1, 2)).verdict == "holds as stated"
    for literal in (found(-2, -1), found(-1, 1)):
        beside = claim(ours, above(0), "recipe", literal=literal)
        assert beside.verdict == "holds for our recipe, not for the paper's"
        assert beside.reason == f"by the paper's algorithm: {figure_text(literal)}"
    assert claim(found(-2, -1), above(0), "recipe", literal=found(1, 2)).verdict == "does not hold"
    for whose, more in (("recipe", {}), ("paper", {"literal": ours}), ("own", {"literal": ours})):
        with pytest.raises(InvalidInput, match="wheel/x: literal"):
            claim(ours, above(0), whose, **more)


def test_a_match_does_not_outperform() -> None:
    more = {"match": at_most(0.01)}
    assert claim(found(-0.02, -0.01), below(0), **more).verdict == "holds as stated"
    assert claim(found(-0.005, 0.005), below(0), **more).verdict == "matches, does not outperform"
    assert claim(found(0.001, 0.009), below(0), **more).verdict == "matches, does not outperform"
    assert claim(found(-0.02, 0.02), below(0), **more).verdict == "undecided"
    assert claim(found(0.011, 0.02), below(0), **more).verdict == "does not hold"


def test_our_own_questions_have_their_own_verdicts() -> None:
    ends = {"yes": (1, 2), "no": (-2, -1), "undecided": (-1, 1)}
    for answer, interval in ends.items():
        verdict = claim(found(*interval), above(0), "own").verdict
        assert verdict == f"our own question: {answer}"
        assert verdict in VERDICTS
    assert claim(found(1, 2), above(0), "own").experiment == "wheel"


def test_figures_and_bars_in_words() -> None:
    assert str(at_least(5 / 6)) == "≥ 0.8333"
    assert str(between(0.7, 1.3)) == "in [0.7, 1.3]"
    assert figure_text(found(1.23456, 2.34567, 2.0)) == "2.0 [1.2, 2.3]"
    assert figure_text(found(-0.00855, 0.01, 0.00085)) == "0.001 [-0.009, 0.010]"
    assert figure_text(found(-0.3, 0.01, -0.04)) == "-0.04 [-0.30, 0.01]"
    assert figure_text(found(0.0004, 0.2, 0.1)) == "0.1000 [0.0004, 0.2000]"  # an end that clears 0 shows it
    assert figure_text(found(1.11, 11.2, 3.96)) == "4.0 [1.1, 11.2]"
    assert figure_text(found(11_800, 13_900, 12_345)) == "12,345 [11,800, 13,900]"
    assert figure_text(found(0, 0.5, 0.2)) == "0.20 [0.00, 0.50]"
    assert figure_text(found(1.1e-9, 2.3e-9, 2e-9)) == "2.0e-09 [1.1e-09, 2.3e-09]"
    assert figure_text(exact(0.25)) == "0.25 exact"
    assert figure_text(Measurement(1.0, -math.inf, math.inf, "2 seeds: too few for an interval")) == "1 unbounded"
