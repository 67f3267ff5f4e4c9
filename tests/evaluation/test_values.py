"""Columns of several policies in one pass, and intervals that know the reward range."""

from __future__ import annotations

import numpy as np
from tests.evaluation.cases import POLICY, log_of, policy

from o2pl.evaluation.results import Valued
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.values import columns_for_values, headline_value, value_mass_missing, wider
from o2pl.learners.targets import as_target


def test_several_policies_at_once_are_each_alone() -> None:
    log = log_of(9000)  # more than a block
    targets = [as_target(policy, log), as_target("logged", log), as_target("uniform", log)]
    model = fit_rewards(log)
    together = columns_for_values(log, targets, model)
    for target, one in zip(targets, together, strict=True):
        alone = columns_for_values(log, [target], model)[0]
        np.testing.assert_array_equal(one.inputs.weights, alone.inputs.weights)
        if target.name == "logged":
            assert one.inputs.expected is None
            assert one.mass is None
        else:
            np.testing.assert_array_equal(one.inputs.expected, alone.inputs.expected)
            np.testing.assert_array_equal(one.mass, alone.mass)
    np.testing.assert_allclose(together[0].mass, POLICY)
    wider = columns_for_values(
        log, [as_target(np.pad(policy(log.contexts) * 0.5, ((0, 0), (0, 1)), constant_values=0.5), log)], None
    )
    assert value_mass_missing(log, wider[0]) == 0.5


def test_intervals_are_cut_to_the_reward_range_and_widened_by_what_is_missing() -> None:
    one = Valued("dr", "", 0.5, -0.1, 0.9)
    assert wider(one, (0, 1), 0.0, False).low == 0
    assert wider(one, (0, 1), 0.2, False).high == 1
    assert wider(one, None, 0.0, False) == one
    assert wider(Valued("dr", "", -3, -4, -2), (0, 1), 0.0, False).high == 1  # wholly outside: it says nothing
    assert wider(Valued("difference", "", 0.5, -0.1, 0.9), (0, 1), 0.3, False).low == -0.4


def test_dr_is_quoted_unless_its_model_adds_noise() -> None:
    assert headline_value({"ips": 1.0, "dr": 1.2}) == "ips"
    assert headline_value({"ips": 2.0, "dr": 1.2}) == "dr"
    assert headline_value({"ips": 1.0}) == "ips"
    assert headline_value({"ips": 1.0, "snips": 2.0}) == "snips"
    assert headline_value({"ips": 0.0, "dr": 1.2}) == "dr"  # no reward in the policy's rows: IPS is 0 without an error
