"""Policy classes: how likely an action is, and how that depends on the parameters."""

from o2pl.policies.actionwise import ActionWise
from o2pl.policies.finite import FiniteClass, ThresholdClass
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.mixture import UniformMixture
from o2pl.policies.softmax import Softmax

__all__ = ["ActionWise", "FiniteClass", "Gaussian", "Softmax", "ThresholdClass", "UniformMixture"]
