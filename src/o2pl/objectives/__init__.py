"""Objectives: clipped importance weights, the pessimistic penalty, and their sum; and reward likelihoods."""

from o2pl.objectives.control import Control, ridge_control
from o2pl.objectives.improvement import improvement_values
from o2pl.objectives.outcome import Outcome, OutcomeLog
from o2pl.objectives.penalty import Phi, Tangent, phi
from o2pl.objectives.pessimistic import Pessimistic, PessimisticLog, PolicyValue
from o2pl.objectives.squares import LeastSquares, SquaresLog
from o2pl.objectives.weights import clipped_moments, importance_weights, weight_cotangent

__all__ = [
    "Control",
    "LeastSquares",
    "Outcome",
    "OutcomeLog",
    "Pessimistic",
    "PessimisticLog",
    "Phi",
    "PolicyValue",
    "SquaresLog",
    "Tangent",
    "clipped_moments",
    "importance_weights",
    "improvement_values",
    "phi",
    "ridge_control",
    "weight_cotangent",
]
