"""What a learner minimises: the objective's settings, and the objective they make of a log."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.interactions import Interactions
from o2pl.objectives.penalty import Phi
from o2pl.objectives.pessimistic import Pessimistic
from o2pl.protocols import Floats
from o2pl.theory.schedules import clip_level, log_inverse_confidence
from o2pl.validation import check_number

# An optimistic start of the baseline: as if this many best rewards had been seen. It makes a learner that has met only
# failures move off the action that failed.
PRIOR_ROWS = 3.0


@dataclass(frozen=True)
class Settings:
    """As the constructor of `O2PL` explains them."""

    penalty: float = 1.0
    clip: Any = "theory"
    baseline: Any = None
    control: float | None = None
    l2: float = 0.0
    p: float = 0.0
    beta: float = 1.0
    delta: float = 0.05

    def __post_init__(self) -> None:
        check_number("penalty", self.penalty, 0)
        check_number("l2", self.l2, 0)
        check_number("beta", self.beta, 0, 1, open_low=True)
        check_number("p", self.p, 0, below=2)
        check_number("delta", self.delta, 0, below=1, open_low=True)
        if self.clip not in (None, "theory"):
            check_number("clip", self.clip, 1, instead="'theory', None or ")
        if self.baseline not in (None, "mean"):
            check_number("baseline", self.baseline, -1, 0, instead="'mean', None or ")
        if self.control is not None:
            check_number("control", self.control, 0, open_low=True, instead="None or ")

    @cached_property
    def numbers(self) -> Floats:
        """The settings as the kernels read them."""
        clip = math.nan if self.clip == "theory" else math.inf if self.clip is None else float(self.clip)
        baseline = math.nan if self.baseline == "mean" else float(self.baseline or 0.0)
        return np.array([clip, self.beta, self.p, self.delta, self.penalty, baseline, self.l2])

    def alpha(self, t: int) -> float:
        """The clipping level for a log of t rows."""
        return clip_at(self.numbers, float(t))

    def phi(self, t: int) -> Phi:
        return Phi(self.alpha(t), max(t, 1), log_inverse_confidence(max(t, 1), self.delta), self.p, self.penalty)

    def level(self, total_loss: float, rows: int) -> float:
        """The baseline b after `rows` losses that sum to `total_loss`."""
        return baseline_at(self.numbers, total_loss, float(rows))

    def objective(self, rows: Interactions, control: Any = None) -> Pessimistic:
        """Of these rows. `control` is a `RidgeControl`, or a baseline for each row, [n]."""
        n = len(rows)
        baseline: Any = self.level(float(np.sum(rows.losses)), n)
        if isinstance(control, np.ndarray):
            baseline, control = control, None
        return Pessimistic(rows.actions, rows.losses, rows.propensities, self.alpha(n), self.phi(n), baseline, control)


# Places in `Settings.numbers`. NaN: by the theory's schedule (CLIP), the mean of the losses (BASELINE).
CLIP, BETA, P, DELTA, PENALTY, BASELINE, L2 = range(7)


@compiled
def clip_at(numbers: Floats, t: float) -> float:
    return clip_level(max(t, 1.0), numbers[BETA], numbers[P]) if math.isnan(numbers[CLIP]) else numbers[CLIP]


@compiled
def penalty_at(numbers: Floats, t: float) -> tuple[float, float, float, float, float]:
    """What `phi` is called with after the variance: α (0 where there is no clipping), t, log 1/δ_t, p, λ."""
    alpha = clip_at(numbers, t)
    bounded = alpha if alpha < math.inf else 0.0
    return bounded, max(t, 1.0), log_inverse_confidence(max(t, 1.0), numbers[DELTA]), numbers[P], numbers[PENALTY]


@compiled
def baseline_at(numbers: Floats, total_loss: float, rows: float) -> float:
    mean = (total_loss - PRIOR_ROWS) / (rows + PRIOR_ROWS)
    return mean if math.isnan(numbers[BASELINE]) else numbers[BASELINE]
