"""Seeded tests of means and proportions. Each is judged at 1e-5, so that the hundreds of them here stay quiet."""

from __future__ import annotations

from typing import Any

import numpy as np

LEVEL = 1e-5
Z = 4.42  # two-sided


def assert_mean_is(sample: Any, mean: float = 0.0, what: str = "") -> None:
    """The mean of independent numbers, by a z test; a sample without spread must have the mean itself."""
    values = np.asarray(sample, np.float64)
    error = values.std(ddof=1) / np.sqrt(len(values))
    found = float(values.mean())
    assert abs(found - mean) <= Z * error + 1e-12, f"{what}: found {found} ± {error}, expected {mean}"


def assert_rate_is(hits: Any, rate: float, what: str = "") -> None:
    """The probability of an event, by an exact binomial test."""
    from scipy.stats import binomtest

    happened = np.asarray(hits, bool)
    p = binomtest(int(happened.sum()), len(happened), rate).pvalue
    assert p > LEVEL, f"{what}: found {happened.mean()} in {len(happened)}, expected {rate} (p = {p})"
