"""Terms of the pessimistic objective: α, Φ and b as functions of the number of rows."""

from __future__ import annotations

import math
from typing import NamedTuple

from o2pl.data.interactions import Interactions
from o2pl.objectives.penalty import Phi
from o2pl.protocols import Floats
from o2pl.theory.schedules import clip_level, log_inverse_confidence

# Optimistic start of the baseline: as if this many best rewards had been observed. It makes a learner that has seen
# only failures move away from the action that failed.
PRIOR_ROWS = 3.0


class Totals(NamedTuple):
    """Totals of all rows of a log, for an objective that is prepared for some of them."""

    rows: float  # number of rows
    losses: float  # Σ y

    @classmethod
    def of(cls, rows: Interactions) -> Totals:
        return cls(len(rows), rows.total_loss)


# Positions in `Pessimistic.numbers`. NaN: the theory's schedule (CLIP), the mean of the losses (BASELINE).
CLIP, BETA, P, DELTA, PENALTY, BASELINE, L2 = range(7)


def clip_at(numbers: Floats, t: float) -> float:
    return clip_level(max(t, 1.0), numbers[BETA], numbers[P]) if math.isnan(numbers[CLIP]) else numbers[CLIP]


def penalty_at(numbers: Floats, t: float) -> Phi:
    t = max(t, 1.0)
    return Phi(clip_at(numbers, t), t, log_inverse_confidence(t, numbers[DELTA]), numbers[P], numbers[PENALTY])


def baseline_at(numbers: Floats, total_loss: float, rows: float) -> float:
    mean = (total_loss - PRIOR_ROWS) / (rows + PRIOR_ROWS)
    return mean if math.isnan(numbers[BASELINE]) else numbers[BASELINE]
