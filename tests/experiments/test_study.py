from __future__ import annotations

import math

import pytest

from o2pl.experiments.study import Claim, at_least, at_most


def test_a_verdict_follows_from_the_bar_and_the_conditions() -> None:
    def verdict(met: bool, conditions: str) -> str:
        return Claim("wheel/x", "It is so.", None, 1.0, "≥ 1", met, conditions).verdict

    assert verdict(True, "") == "reproduced"
    assert verdict(True, "with a setting of ours") == "reproduced under conditions"
    assert verdict(False, "") == verdict(False, "with a setting of ours") == "not reproduced"
    assert Claim("wheel/x", "It is so.", None, 1.0, "≥ 1", True).experiment == "wheel"


@pytest.mark.parametrize(("measured", "high", "low"), [(2.0, True, False), (1.0, True, True), (math.nan, False, False)])
def test_bars(measured: float, high: bool, low: bool) -> None:
    assert at_least(measured, 1.0)[1:] == ("≥ 1", high)
    assert at_most(measured, 1.0)[1:] == ("≤ 1", low)
