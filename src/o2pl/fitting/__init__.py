"""Offline learning from a log: candidates, their value on held-out rows, and the choice."""

from o2pl.fitting.candidates import Candidate, candidates_for
from o2pl.fitting.choosing import Fit, Judged, fit

__all__ = ["Candidate", "Fit", "Judged", "candidates_for", "fit"]
