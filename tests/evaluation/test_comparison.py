"""Differences row by row, and as functions of the propensities."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.cases import log_of, policy

from o2pl.evaluation.comparison import comparison_of_sides, comparison_rows
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.unshown import Side
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import as_target


@pytest.mark.parametrize("baseline", ["logged", "uniform"])
def test_linear_rows_are_those_of_the_difference_at_the_propensities(baseline: str) -> None:
    log = log_of()
    targets, model = [as_target(policy, log), as_target(baseline, log)], fit_rewards(log)
    own, other = columns_for_values(log, targets, model)
    rows = comparison_rows(log, own, other)
    sides = [Side(target, one.inputs) for target, one in zip(targets, (own, other), strict=True)]
    found = comparison_of_sides(log, sides, model, 0.05, False)
    assert found.difference is not None
    at = rows.base + rows.slope / log.propensities
    assert at.mean() == pytest.approx(found.difference.value)
    alone = comparison_rows(log, own, None)
    assert (alone.base + alone.slope / log.propensities).mean() == pytest.approx(
        np.mean(own.inputs.expected + own.inputs.weights * (log.rewards - own.inputs.played))
    )


def test_without_a_model_the_rows_are_self_normalised() -> None:
    log = log_of()
    own = columns_for_values(log, [as_target(policy, log)], None)[0]
    rows = comparison_rows(log, own, None)
    w = own.inputs.weights
    assert (rows.base + rows.slope / log.propensities).mean() == pytest.approx(w @ log.rewards / w.sum())
