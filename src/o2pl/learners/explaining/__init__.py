"""Why an action: what each feature adds to a decision, and what the log has to say about it."""

from o2pl.learners.explaining.coefficients import Coefficients
from o2pl.learners.explaining.explanation import Explanation

__all__ = ["Coefficients", "Explanation"]
