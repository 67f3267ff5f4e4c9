"""Pure functions of numbers: the schedules and the rates of the paper's Theorem 1."""

from o2pl.theory.rates import overlap_regret_exponent, regret_exponent
from o2pl.theory.schedules import clip_exponent, clip_level, log_inverse_confidence, overlap_clip

__all__ = [
    "clip_exponent",
    "clip_level",
    "log_inverse_confidence",
    "overlap_clip",
    "overlap_regret_exponent",
    "regret_exponent",
]
