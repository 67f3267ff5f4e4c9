"""The paper's theory as functions: schedules and rates of Theorem 1, inequalities, critical radius, error bound."""

from o2pl.theory.critical import (
    balance_radius,
    closed_form_radius,
    complexity,
    critical_radius,
    radius_scale,
    recursion_regret,
)
from o2pl.theory.entropy import (
    ENTROPY_EXPONENTS,
    finite_entropy,
    gaussian_entropy,
    smooth_entropy_exponent,
    softmax_entropy,
)
from o2pl.theory.heb import ErrorBound, error_bound, error_bound_of_sample
from o2pl.theory.inequality import (
    clipping_bias_bound,
    crossing_bound,
    deviation,
    peeled_deviation,
    sharp_clipping_bias_bound,
    sharper_crossing_bound,
)
from o2pl.theory.rates import overlap_regret_exponent, regret_exponent, regret_rate
from o2pl.theory.schedules import clip_exponent, clip_level, log_inverse_confidence, overlap_clip
from o2pl.theory.self_normalised import (
    finite_class_bound,
    finite_family_maximum,
    maximal_deviation,
    self_normalised_bound,
)

__all__ = [
    "ENTROPY_EXPONENTS",
    "ErrorBound",
    "balance_radius",
    "clip_exponent",
    "clip_level",
    "clipping_bias_bound",
    "closed_form_radius",
    "complexity",
    "critical_radius",
    "crossing_bound",
    "deviation",
    "error_bound",
    "error_bound_of_sample",
    "finite_class_bound",
    "finite_entropy",
    "finite_family_maximum",
    "gaussian_entropy",
    "log_inverse_confidence",
    "maximal_deviation",
    "overlap_clip",
    "overlap_regret_exponent",
    "peeled_deviation",
    "radius_scale",
    "recursion_regret",
    "regret_exponent",
    "regret_rate",
    "self_normalised_bound",
    "sharp_clipping_bias_bound",
    "sharper_crossing_bound",
    "smooth_entropy_exponent",
    "softmax_entropy",
]
