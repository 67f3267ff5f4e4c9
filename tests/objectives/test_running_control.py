from __future__ import annotations

import numpy as np

from o2pl.data.contexts import SparseRows
from o2pl.objectives import Pessimistic
from o2pl.objectives.running_control import RunningControl

N, D, K, B, RIDGE = 60, 4, 3, -0.4, 2.0


def one_hot(seed: int = 0) -> tuple[SparseRows, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    rows = SparseRows(generator.integers(D, size=N).astype(np.int32), np.ones(N, np.float32), np.arange(N + 1), D)
    return rows, generator.integers(K, size=N), -generator.random(N)


def test_on_one_hot_rows_it_is_ridge_on_the_rows_before() -> None:
    """Without covariances to keep, the recursion is exact: Σ (y - b) / (count + ridge) of its earlier rows."""
    rows, actions, losses = one_hot()
    control = RunningControl(RIDGE, K)
    state = control.observe(control.init(), rows, actions, losses, Pessimistic(baseline=B).numbers)
    found = control.control(state, slice(None), actions, B)
    slow = np.empty((K, N))
    for s in range(N):
        for a in range(K):
            before = (actions[:s] == a) & (rows.indices[:s] == rows.indices[s])
            slow[a, s] = B + (losses[:s][before] - B).sum() / (before.sum() + RIDGE)
    np.testing.assert_allclose(found.by_action, np.clip(slow, -1, 0), atol=1e-5)
    np.testing.assert_array_equal(found.played, found.by_action[actions, np.arange(N)])


def test_rows_in_batches_are_rows_at_once_and_earlier_states_stay() -> None:
    rows, actions, losses = one_hot(1)
    control, numbers = RunningControl(RIDGE, K), Pessimistic(baseline="mean").numbers
    once = control.observe(control.init(), rows, actions, losses, numbers)
    start = control.init()
    half = control.observe(start, rows[:25], actions[:25], losses[:25], numbers)
    whole = control.observe(half, rows[25:], actions[25:], losses[25:], numbers)
    for name in once:
        np.testing.assert_array_equal(whole[name], once[name])
    assert len(start["predicted"]) == 0
    assert len(half["predicted"]) == 25
