from __future__ import annotations

import numpy as np
import pytest

from o2pl.errors import InvalidInput
from o2pl.interactions import Interactions, Log
from o2pl.rows import ActionSets


def batch(n: int, seed: int = 0) -> Interactions:
    generator = np.random.default_rng(seed)
    return Interactions(
        generator.normal(size=(n, 3)).astype(np.float32),
        generator.integers(4, size=n),
        -generator.random(n),
        generator.uniform(0.1, 1, n),
    )


def test_a_log_holds_what_was_put_into_it_however_it_came() -> None:
    rows = batch(100)
    log = Log(3)
    for start, stop in ((0, 1), (1, 1), (1, 40), (40, 41), (41, 100)):
        log.extend(rows[start:stop])
    assert len(log) == 100
    for name in ("contexts", "actions", "losses", "propensities"):
        np.testing.assert_array_equal(getattr(log.columns, name), getattr(rows, name))
        np.testing.assert_array_equal(getattr(log[90:], name), getattr(rows, name)[90:])


def test_appending_moves_each_row_a_bounded_number_of_times() -> None:
    log, moved, capacity = Log(3), 0, 16
    for s in range(2000):
        log.extend(batch(1, s))
        if log.capacity != capacity:
            moved, capacity = moved + capacity, log.capacity
    assert moved < 2 * 2000


def test_a_log_of_action_sets() -> None:
    generator = np.random.default_rng(0)
    matrices = [generator.normal(size=(k, 2)).astype(np.float32) for k in (1, 5, 2, 3, 1, 4) * 10]
    log = Log(2, action_sets=True)
    for start, stop in ((0, 1), (1, 30), (30, 60)):
        sets = ActionSets.of(matrices[start:stop])
        n = stop - start
        log.extend(Interactions(sets, np.zeros(n, int), np.zeros(n), np.ones(n)))
    contexts = log[7:50].contexts
    assert len(contexts) == 43
    for s in range(43):
        np.testing.assert_array_equal(contexts[s : s + 1].values, matrices[7 + s])
    restored = Log(2, action_sets=True)
    restored.restore(log.state())
    np.testing.assert_array_equal(restored.columns.contexts.values, log.columns.contexts.values)
    np.testing.assert_array_equal(restored.columns.contexts.offsets, log.columns.contexts.offsets)


def test_action_sets_of_unlike_width_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"action set 1: found shape \(2, 3\), expected \(number of actions, 2\)"):
        ActionSets.of([np.zeros((4, 2)), np.zeros((2, 3))])
