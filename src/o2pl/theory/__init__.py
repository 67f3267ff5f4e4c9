"""Pure functions of numbers: schedules and rates of the paper's Theorem 1, its inequality, radius and error bound."""

from o2pl.theory.critical import critical_radius, radius_scale, recursion_regret
from o2pl.theory.heb import ErrorBound, error_bound, error_bound_of_sample
from o2pl.theory.inequality import clipping_bias_bound, crossing_bound, deviation
from o2pl.theory.rates import overlap_regret_exponent, regret_exponent
from o2pl.theory.schedules import clip_exponent, clip_level, log_inverse_confidence, overlap_clip

__all__ = [
    "ErrorBound",
    "clip_exponent",
    "clip_level",
    "clipping_bias_bound",
    "critical_radius",
    "crossing_bound",
    "deviation",
    "error_bound",
    "error_bound_of_sample",
    "log_inverse_confidence",
    "overlap_clip",
    "overlap_regret_exponent",
    "radius_scale",
    "recursion_regret",
    "regret_exponent",
]
