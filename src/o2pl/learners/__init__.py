"""Learners: Algorithm 1 and its schedules, unions of policy classes, and the public estimator classes."""

from o2pl.learners.bandit import Bandit
from o2pl.learners.base import Run, load
from o2pl.learners.changes import Change
from o2pl.learners.continuous_bandit import ContinuousBandit
from o2pl.learners.decider import Decider
from o2pl.learners.estimators import O2PL
from o2pl.learners.explaining import Explanation
from o2pl.learners.gaussian import GaussianO2PL
from o2pl.learners.incumbent import SafeImprovement
from o2pl.learners.member import Member
from o2pl.learners.schedules import Exact, Geometric, Replay

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
