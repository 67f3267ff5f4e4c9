"""The control variate of an engine: of all rows at once, or in passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from o2pl import O2PL
from o2pl.engine.controlling import control_of
from o2pl.fitting.passes import BlockPasses

G = np.random.default_rng(3)
X, ACTIONS = G.normal(size=(300, 4)), G.integers(3, size=300)
LOG = (X, ACTIONS, (X[np.arange(300), ACTIONS] > 0).astype(float), np.full(300, 1 / 3))


def engine_with(**settings: Any) -> Any:
    return O2PL(3, policy="linear", random_state=0, **settings).partial_fit(*LOG)._engine


def test_in_passes_it_is_that_of_all_rows(tmp_path: Path) -> None:
    engine = engine_with(control=0.5)
    rows = engine.log.columns
    whole = control_of(engine, rows, 0, None, {})
    engine.passes = BlockPasses(tmp_path, lambda _, make: make())
    parts = control_of(engine, rows, 0, None, {})
    np.testing.assert_allclose(parts.by_action, whole.by_action, atol=1e-5)
    np.testing.assert_allclose(parts.played, whole.played, atol=1e-5)
    assert np.ptp(whole.by_action) > 0.3  # it tells rows apart


def test_without_a_ridge_there_is_none() -> None:
    engine = engine_with(control=None)
    assert control_of(engine, engine.log.columns, 0, None, {}) is None
