from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from o2pl_reproduction.claims import summary
from o2pl_reproduction.studies import bakeoff_statistics as statistics


def rows_of_two_seeds() -> pa.Table:
    return pa.table(
        {
            "unit": [0, 0, 1, 1, 2, 2, 3, 3],
            "world": ["digits"] * 8,
            "learner": ["o2pl", "o2pl", "uniform", "uniform"] * 2,
            "round": [1, 2] * 4,
            "mean_reward": [0.1, 0.5, 0.2, 0.1, 0.3, 0.7, 0.0, 0.1],
        }
    )


def test_the_summary_takes_the_last_value_of_each_unit() -> None:
    finals = summary.final_values(rows_of_two_seeds(), "mean_reward")
    assert {key: list(values) for key, values in finals.items()} == {
        ("digits", "o2pl"): [0.5, 0.7],
        ("digits", "uniform"): [0.1, 0.1],
    }
    mean, error = summary.mean_and_error(finals["digits", "o2pl"])
    assert (mean, error) == pytest.approx((0.6, 0.1))  # sd = 0.1 √2, over √2
    shown = summary.screen_table(rows_of_two_seeds(), "mean_reward")
    assert [list(column.cells) for column in shown.columns] == [["o2pl", "uniform"], ["0.600 ± 0.100", "0.100 ± 0.000"]]


def test_the_bootstrap_is_the_same_each_time_and_near_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(0.3, 0.1, 80)
    low, high = statistics.percentile_interval(values)
    assert (low, high) == statistics.percentile_interval(values.copy())
    error = values.std() / math.sqrt(80)
    # the ends of 10,000 resamples have a standard error of 0.027 standard errors: four of them, and some skewness
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)
    narrow = statistics.percentile_interval(values, level=0.5)
    assert low < narrow[0] < values.mean() < narrow[1] < high
    assert statistics.percentile_interval(np.array([0.4])) == pytest.approx((0.4, 0.4))
