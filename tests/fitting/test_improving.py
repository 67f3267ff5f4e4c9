"""What safe improvement needs of a log, and says of it; verdicts: `cli/test_fit`, `learners/test_incumbent`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.fitting.improving import improve


def log_of(rows: int = 300, **columns: Any) -> o2pl.Interactions:
    rng = np.random.default_rng(0)
    given = {"contexts": rng.normal(size=(rows, 2)), "actions": rng.integers(2, size=rows), "rewards": rng.random(rows),
             "propensities": np.full(rows, 0.5), "reward_range": (0.0, 1.0), **columns}  # fmt: skip
    return o2pl.Interactions(**given)


def improved(log: o2pl.Interactions, incumbent: str = "logged") -> tuple[Any, list[str]]:
    said: list[str] = []
    return improve(log, incumbent, confidence=0.9, seed=0, kept=lambda _, compute: compute(), warn=said.append), said


def test_it_is_the_learner_of_python() -> None:
    log = log_of()
    found, said = improved(log)
    expected = o2pl.O2PL.from_incumbent(log, n_actions=2, reward_range=(0.0, 1.0), random_state=0)
    np.testing.assert_array_equal(found.learner.predict_proba(log.contexts), expected.predict_proba(log.contexts))
    assert (found.kept_incumbent, len(found.log), said) == (False, 300, [])


def test_weighted_rows_are_thinned_and_missing_propensities_estimated() -> None:
    found, said = improved(log_of(row_weights=np.repeat([1.0, 4.0], 150)))
    assert len(found.log) < 300
    assert said[0].startswith("note: rows stand for different numbers of decisions (pdrop)")
    _, said = improved(log_of(propensities=None))
    assert said == ["warning: the log has no propensities; they are estimated from the contexts"]


def test_what_cannot_be_improved_is_said(tmp_path: Path) -> None:
    prices = log_of(actions=np.random.default_rng(0).random(300))
    with pytest.raises(o2pl.InvalidInput, match="expected discrete ones"):
        improved(prices)
    with pytest.raises(o2pl.InvalidInput, match="incumbent: found no file 'nobody'"):
        improved(log_of(), "nobody")
    learner = o2pl.GaussianO2PL(random_state=0)
    learner.update([1.0], 0.5, 1.0, 0.3)
    learner.save(tmp_path / "prices.o2pl")
    with pytest.raises(o2pl.InvalidInput, match="expected a learner of discrete actions"):
        improved(log_of(), str(tmp_path / "prices.o2pl"))
