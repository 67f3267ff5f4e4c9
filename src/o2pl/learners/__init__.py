"""Learners: Algorithm 1 and its schedules, unions of policy classes, and the public estimator classes."""

from o2pl.engine.change import Change
from o2pl.engine.decider import Decider
from o2pl.engine.member import Member
from o2pl.engine.schedules import Exact, Geometric, Replay
from o2pl.explaining import Explanation
from o2pl.learners.bandit import Bandit
from o2pl.learners.base import Run, load
from o2pl.learners.continuous_bandit import ContinuousBandit
from o2pl.learners.gaussian import GaussianO2PL
from o2pl.learners.incumbent import SafeImprovement
from o2pl.learners.o2pl import O2PL

__all__ = [
    "O2PL",
    "Bandit",
    "Change",
    "ContinuousBandit",
    "Decider",
    "Exact",
    "Explanation",
    "GaussianO2PL",
    "Geometric",
    "Member",
    "Replay",
    "Run",
    "SafeImprovement",
    "load",
]
