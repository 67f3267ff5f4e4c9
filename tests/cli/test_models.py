"""`o2pl models`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.serving.trained import said, train
from tests.serving.worlds import decide, visits

import o2pl
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer


@pytest.fixture
def trained(store: Store) -> Store:
    return train(store)


def test_versions_are_listed_rolled_back_pinned_and_unpinned(trained: Store) -> None:
    listed = said(trained, "models", "list")
    assert "served" in listed
    assert "180" in listed
    assert "version 2 of page is served" in said(trained, "models", "roll-back", "--why", "clicks fell")
    assert trained.served_version(1) == 2
    assert "withdrawn: clicks fell" in said(trained, "models", "list")
    g = np.random.default_rng(1)
    decide(trained, visits(60, g), g, "later")
    Trainer(trained).step(last=True)
    assert trained.served_version(1) == 2  # what is published later is not served
    said(trained, "models", "pin", "1")
    assert trained.served_version(1) == 1
    assert "version 4 of page is served" in said(trained, "models", "unpin")
    assert "expected one before 4" in said(trained, "models", "roll-back", "--to", "4", fails=True)
    assert "uniform decisions" in said(trained, "models", "roll-back", "--to", "0")
    assert trained.served_version(1) == 0
    assert "no version 9" in said(trained, "models", "pin", "9", fails=True)


def test_a_policy_is_exported_and_imported(trained: Store, tmp_path: Path) -> None:
    file = tmp_path / "policy.o2pl"
    said(trained, "models", "export", "1", str(file))
    assert o2pl.load(file).predict_proba([{"_multi": [{"id": "a0"}, {"id": "a1"}]}]).shape == (2,)
    assert "version 4 of page is pinned" in said(trained, "models", "import", str(file))
    g = np.random.default_rng(3)
    decide(trained, visits(1, g), g, "later")
    Trainer(trained).step(last=True)
    assert trained.served_version(1) == 4  # one reward does not replace it
    assert trained.model_body(1, 4) == trained.model_body(1, 1)
    other = o2pl.Bandit(2).partial_fit([[0.1]], [1], [1.0], [0.5])
    other.save(file)
    assert "expected one for action sets" in said(trained, "models", "import", str(file), fails=True)
    assert len(trained.model_versions(1)) == 5


def test_learning_goes_on_from_an_imported_learner_or_log(trained: Store, tmp_path: Path) -> None:
    learner, g, log = tmp_path / "learner.o2pl", np.random.default_rng(3), tmp_path / "log.parquet"
    said(trained, "export", str(log), "--app", "page")
    contexts = [{"reader": f"r{k % 2}", "_multi": [{"id": "a0"}, {"id": "a1"}]} for k in range(40)]
    bandit = o2pl.Bandit(random_state=0).fit(contexts, [k % 2 for k in range(40)], [0.0, 1.0] * 20, [0.5] * 40)
    bandit.save(learner)
    for file, rows in ((learner, 40), (log, 180)):
        told = said(trained, "models", "import", str(file))
        assert "is published" in told
        assert f"learning goes on from its {rows} rows" in told
        decide(trained, visits(2, g), g, file.stem)
        trainer = Trainer(trained)
        trainer.step(last=True)
        assert len(trainer.training[1].learner.log_) == rows + 2
    assert trained.application(1).pinned is None
    assert "is pinned" in said(trained, "models", "import", str(learner), "--pin")
    policy = tmp_path / "policy.o2pl"
    said(trained, "models", "export", "1", str(policy))
    assert "knows nothing of it" in said(trained, "models", "import", str(policy), "--no-pin")
