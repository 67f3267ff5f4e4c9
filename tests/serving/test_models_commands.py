"""`o2pl models` and `o2pl explain EVENT`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.worlds import decide, visits
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer


@pytest.fixture
def trained(store: Store) -> Store:
    """With versions 1 to 3."""
    store.add_application("page")
    g, trainer = np.random.default_rng(0), Trainer(store)
    for batch in range(3):
        decide(store, visits(60, g), g, f"b{batch}")
        trainer.step(last=True)
    return store


def said(store: Store, *arguments: str, fails: bool = False) -> str:
    done = CliRunner().invoke(app, [*arguments, "--database", str(store.engine.url.database)], terminal_width=150)
    assert (done.exit_code != 0) == fails, done.output
    return done.output


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
    assert "version 4 of page is pinned" in said(trained, "models", "import", str(file), "--pin")
    assert trained.model_body(1, 4) == trained.model_body(1, 1)
    other = o2pl.Bandit(2).partial_fit([[0.1]], [1], [1.0], [0.5])
    other.save(file)
    assert "expected one of action sets" in said(trained, "models", "import", str(file), fails=True)
    assert len(trained.model_versions(1)) == 4


def test_an_event_is_explained_and_a_model_file_too(trained: Store, tmp_path: Path) -> None:
    told = said(trained, "explain", "b2-7")
    assert "event b2-7: a" in told
    assert "version 2" in told
    assert "the same, bit for bit" in told
    assert "shared.reader.likes" in told
    assert "no model yet: uniform" in said(trained, "explain", "b0-3")
    assert "found none with the id 'nobody'" in said(trained, "explain", "nobody", fails=True)
    file = tmp_path / "policy.o2pl"
    said(trained, "models", "export", "2", str(file))
    context = '{"reader": {"likes": "arts"}, "_multi": [{"id": "a0", "topic": "news"}, {"id": "a2", "topic": "arts"}]}'
    done: Any = CliRunner().invoke(app, ["explain", str(file), "--context", context])
    assert done.exit_code == 0, done.output
    assert "shared.reader.likes" in done.output
    assert "found it beside --context" in said(trained, "explain", str(file), "--context", context, fails=True)
