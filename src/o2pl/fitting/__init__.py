"""Learning from a log offline: candidates, what each is worth on rows it has not learned from, and the choice."""

from o2pl.fitting.candidates import Candidate, candidates_for
from o2pl.fitting.choosing import Fit, Judged, fit

__all__ = ["Candidate", "Fit", "Judged", "candidates_for", "fit"]
