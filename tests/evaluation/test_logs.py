"""However the log is given."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.evaluation.cases import log_of, policy

from o2pl import InvalidInput
from o2pl.evaluation.evaluate import evaluate
from o2pl.evaluation.logs import as_log


def test_four_columns_and_their_range() -> None:
    log = log_of(200)
    whole = evaluate(log, policy, baseline="logged", at_any_time=True)
    for columns in (tuple(log), list(log)):
        one = evaluate(columns, policy, baseline="logged", at_any_time=True, reward_range=(0, 1))
        assert one.estimates == whole.estimates
        assert one.difference == whole.difference
    assert as_log(tuple(log)).reward_range is None
    with pytest.raises(InvalidInput, match=r"propensity, row 0: found 0\.0"):
        evaluate((log.contexts, log.actions, log.rewards, np.zeros(200)), policy)


def test_a_stated_range_takes_the_place_of_the_logs_own() -> None:
    log = log_of(200)
    assert as_log(log) is as_log(log, (0, 1)) is log
    assert as_log(log, (-1, 2)).reward_range == (-1, 2)
    wide, narrow = (evaluate(log, policy, at_any_time=True, reward_range=ends) for ends in ((-1, 2), (0, 1)))
    assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]
    with pytest.raises(InvalidInput, match=r"reward, row \d+: found 1.0, expected a number in \[0, 0.5\]"):
        evaluate(log, policy, reward_range=(0, 0.5))
    with pytest.raises(InvalidInput, match="reward_range: found"):
        evaluate(log, policy, reward_range=(1, 0))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([1, 2], "a list of 2"),
        ((1, 2, 3), "a tuple of 3"),
        ("log.csv", "the text 'log.csv'"),
        (None, "a NoneType"),
        ({"action": [1]}, "a dict"),
        (np.ones((4, 2)), "a ndarray"),
    ],
)
def test_what_is_no_log(given: Any, found: str) -> None:
    expected = "Interactions (such as read_log returns), a learner, a Log, or a tuple of four columns"
    with pytest.raises(InvalidInput, match=re.escape(f"log: found {found}, expected {expected}")):
        evaluate(given, policy)
