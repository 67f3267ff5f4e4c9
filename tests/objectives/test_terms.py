from __future__ import annotations

import numpy as np
import pytest

from o2pl.objectives import Pessimistic
from o2pl.objectives.terms import PRIOR_ROWS, baseline_at, clip_at, penalty_at
from o2pl.theory import clip_level, log_inverse_confidence


def test_by_the_theory_or_as_stated() -> None:
    theory = Pessimistic(p=0.5, beta=0.7, delta=0.1).numbers
    assert clip_at(theory, 50.0) == clip_level(50.0, 0.7, 0.5)
    assert penalty_at(theory, 50.0) == (
        clip_level(50.0, 0.7, 0.5),
        50.0,
        log_inverse_confidence(50.0, 0.1),
        0.5,
        1.0,
    )
    assert clip_at(Pessimistic(clip=3).numbers, 50.0) == 3
    assert clip_at(Pessimistic(clip=None).numbers, 50.0) == np.inf
    assert penalty_at(theory, 0.0) == penalty_at(theory, 1.0)


def test_the_mean_starts_as_if_the_best_had_been_seen() -> None:
    mean = Pessimistic(baseline="mean").numbers
    assert baseline_at(mean, 0.0, 0.0) == -1
    assert baseline_at(mean, -2.0, 10.0) == pytest.approx((-2 - PRIOR_ROWS) / (10 + PRIOR_ROWS))
    assert baseline_at(Pessimistic(baseline=-0.3).numbers, -2.0, 10.0) == -0.3
    assert baseline_at(Pessimistic(baseline=None).numbers, -2.0, 10.0) == 0
