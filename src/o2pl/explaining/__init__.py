"""Explanations of decisions: the contribution of each feature, and the support in the log."""

from o2pl.explaining.coefficients import Coefficients
from o2pl.explaining.explanation import Explanation

__all__ = ["Coefficients", "Explanation"]
