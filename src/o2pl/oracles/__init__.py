"""Minimisers. Each returns a `Solution`: parameters, value, whether it converged, evaluations."""

from o2pl.oracles.adam import Adam
from o2pl.oracles.exhaustive import ClassSums, exhaustive
from o2pl.oracles.lbfgs import LBFGS
from o2pl.oracles.majorise import MajoriseMinimise

__all__ = ["LBFGS", "Adam", "ClassSums", "MajoriseMinimise", "exhaustive"]
