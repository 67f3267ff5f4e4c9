from __future__ import annotations

import math

import pytest

from o2pl.theory import (
    clip_exponent,
    clip_level,
    log_inverse_confidence,
    overlap_clip,
)


def test_confidence_sums_to_delta() -> None:
    total = sum(math.exp(-log_inverse_confidence(t, 0.05)) for t in range(1, 200_000))
    assert total == pytest.approx(0.05 * (1 - 1 / 200_000), rel=1e-9)


def test_clip_levels_of_theorem_1() -> None:
    assert clip_level(1) == 2
    assert clip_level(100) == 1 + math.log(math.e * 100)
    assert clip_level(10**6, beta=0.5, p=0.0) == pytest.approx((10**6) ** (1 / 3))
    assert clip_level(2, beta=0.9, p=1.0) == 2
    assert clip_exponent(0.5, 1.0) == 0.25
    assert overlap_clip(0.04) == 25
