"""Policy classes: scores of actions as functions of the parameters."""

from o2pl.policies.actionwise import ActionWise
from o2pl.policies.cells import Cells
from o2pl.policies.curve import Curve
from o2pl.policies.finite import FiniteClass, ThresholdClass
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.likelihood import log_likelihood, log_probabilities, probabilities
from o2pl.policies.mixture import UniformMixture
from o2pl.policies.neural import JaxPolicy, Neural, NeuralGaussian, NeuralSets
from o2pl.policies.softmax import Softmax
from o2pl.policies.sparse import SparseSoftmax
from o2pl.policies.truncated import Truncated

__all__ = [
    "ActionWise",
    "Cells",
    "Curve",
    "FiniteClass",
    "Gaussian",
    "JaxPolicy",
    "Neural",
    "NeuralGaussian",
    "NeuralSets",
    "Softmax",
    "SparseSoftmax",
    "ThresholdClass",
    "Truncated",
    "UniformMixture",
    "log_likelihood",
    "log_probabilities",
    "probabilities",
]
