"""Small results of every step, made by hand."""

from __future__ import annotations

import numpy as np

from o2pl.demo.improved import Improvement
from o2pl.demo.judged import JudgedPolicy, OldRows
from o2pl.demo.online import BANDIT, UNIFORM, VW, Online
from o2pl.demo.served import ServedCalls
from o2pl.serving.simulate import Played

ONLINE = Online({BANDIT: np.ones((2, 40)), VW: np.tile([1.0, 0.0], (2, 20)), UNIFORM: np.zeros((2, 40))})
JUDGED = OldRows(
    40,
    0.8,
    (JudgedPolicy("A", 0.5, 0.4, 0.6, 0.55), JudgedPolicy("uniform", 0.2, 0.15, 0.25, 0.1)),
    "A is <better> & sure",
)
IMPROVED = (
    Improvement(300, True, 0.05, 0.12, -0.05),
    Improvement(300, False, -0.1, 0.0, 0.01),
    Improvement(300, True, 0.04, 0.03, -0.02),
)
CALLS = [Played(1.0, 0.1 + 0.3 * (k >= 150), 0.5, 0.2, 0.3) for k in range(300)]
SERVED = ServedCalls(CALLS, 3.0, 1.5, {"eventId": "e"}, {"rewardActionId": "news"})
