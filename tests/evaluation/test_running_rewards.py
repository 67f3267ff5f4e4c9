"""A reward model for sequences never looks ahead."""

from __future__ import annotations

import numpy as np
from tests.evaluation.cases import log_of, policy

from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.running_rewards import running_rewards
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import as_target


def test_later_rows_do_not_matter() -> None:
    log = log_of(500)
    other = log.changed(rewards=np.r_[log.rewards[:256], 1 - log.rewards[256:]])
    found = []
    for one in (log, other):
        model = running_rewards(one)
        assert model is not None
        found.append(columns_for_values(one, [as_target(policy, one)], model)[0].inputs)
    np.testing.assert_array_equal(found[0].played[:256], found[1].played[:256])
    np.testing.assert_array_equal(found[0].expected[256:], found[1].expected[256:])  # fitted to the first 256
    assert (found[0].played[:64] == 0.5).all()
    later = fit_rewards(log).played(slice(256, 500))
    assert np.abs(found[0].played[256:] - later).mean() < 0.1


def test_it_knows_no_real_valued_actions_and_no_unknown_range() -> None:
    assert running_rewards(log_of(100, reward_range=None)) is None
