"""Logs of incumbents: who is dealt which rows, how good the incumbents are, and what they write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.errors import InvalidInput
from o2pl.simulation.worlds import Embedded
from o2pl.simulation.worlds.incumbents import IncumbentLog

DIGITS = Embedded("digits")


def some_log(seed: int = 0, rows: int = 600, **settings: Any) -> Any:
    return IncumbentLog(DIGITS, **settings).log(rows, np.random.default_rng(seed))


def test_rows_that_value_policies_are_in_no_log() -> None:
    logged = some_log(rows=10000)
    world = IncumbentLog(DIGITS)
    assert len(logged.contexts) == 450  # a quarter of 1797
    assert len(logged.interactions) == world.log_rows == 1797 - 450 - 269
    both = np.vstack([logged.contexts, logged.interactions.contexts])
    unique = len(np.unique(DIGITS.load().contexts, axis=0))
    assert len(np.unique(both, axis=0)) >= len(both) - (1797 - unique)


def test_propensities_are_exact_and_keep_the_floor() -> None:
    logged = some_log(epsilon=0.2, flip=0.4)
    log = logged.interactions
    assert np.array_equal(log.propensities, logged.logging[np.arange(len(log)), log.actions])
    assert logged.logging.min() >= 0.2 / 10 - 1e-12
    assert np.allclose(logged.logging.sum(axis=1), 1)
    assert set(np.unique(log.rewards)) == {0.0, 1.0}
    assert logged.oracle_value == pytest.approx(0.6)
    # over 600 rows the mean reward is within four standard errors of the logger's value (other rows, same policy)
    assert log.rewards.mean() == pytest.approx(logged.logger_value, abs=4 * 0.5 * np.sqrt(1 / 600 + 1 / 450))


def test_incumbents_are_as_good_as_they_are_called() -> None:
    kinds = {"good": {}, "mediocre": {"logger_rows": 20}, "blind": {"hidden": 0.67}, "swapped": {"swapped": 0.5}}
    value = {name: np.mean([some_log(seed, **kind).logger_value for seed in range(3)]) for name, kind in kinds.items()}
    assert value["good"] > value["blind"] + 0.02
    assert value["blind"] > value["swapped"] + 0.05
    assert value["good"] > value["mediocre"] + 0.1
    assert value["swapped"] < 0.55  # right for half of the classes


def test_a_hidden_feature_does_not_move_the_incumbent() -> None:
    world = IncumbentLog(DIGITS, hidden=0.9)
    data = DIGITS.load()
    view = world._view(data, np.random.default_rng(0))
    assert (view.contexts != data.contexts).any(axis=0).sum() <= int(0.9 * 64)
    assert (view.contexts == 0).all(axis=0).sum() >= int(0.9 * 64)
    taught = IncumbentLog(DIGITS, swapped=0.5)._view(data, np.random.default_rng(0)).labels
    moved = [c for c in range(10) if (taught[data.labels == c] != c).all()]
    assert len(moved) == 5
    assert sorted({int(taught[data.labels == c][0]) for c in range(10)}) == list(range(10))


def test_the_same_seed_writes_the_same_log() -> None:
    first, again, other = some_log(3, 50), some_log(3, 50), some_log(4, 50)
    assert np.array_equal(first.interactions.actions, again.interactions.actions)
    assert not np.array_equal(first.interactions.contexts, other.interactions.contexts)


@pytest.mark.parametrize(
    "wrong",
    [{"logger_rows": 1}, {"hidden": 1.0}, {"swapped": 2.0}, {"sharpness": 0.0}, {"epsilon": -1.0}, {"flip": 0.5}],
)
def test_bad_settings_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        IncumbentLog(DIGITS, **wrong)
