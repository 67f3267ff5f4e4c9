"""Offline learning from a log: candidates, their value on held-out rows, and the choice."""

from typing import TYPE_CHECKING

from o2pl.lazily import lazily_imported

if TYPE_CHECKING:
    from o2pl.fitting.candidate_learners import Candidate, candidates_for
    from o2pl.fitting.choice import Fit, Judged, fit

__all__ = ["Candidate", "Fit", "Judged", "candidates_for", "fit"]

__getattr__, __dir__ = lazily_imported(
    __name__,
    {"o2pl.fitting.candidate_learners": "Candidate candidates_for", "o2pl.fitting.choice": "Fit Judged fit"},
)
