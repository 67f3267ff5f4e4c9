"""`o2pl train`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.serving.worlds import decide, visits
from typer.testing import CliRunner

from o2pl.cli import app
from o2pl.serving.store import Store
from o2pl.serving.trainer_lease import Election


def test_what_is_there_is_learned_and_the_state_lies_beside_the_database(store: Store) -> None:
    store.add_application("page")
    g, database = np.random.default_rng(0), str(store.engine.url.database)
    decide(store, visits(30, g), g, "a")
    done = CliRunner().invoke(app, ["train", "--database", database])
    assert done.exit_code == 0, done.output
    assert "learned from 30 outcomes; 1 model published" in done.output
    assert len(list(Path(f"{database}.trainer").iterdir())) == 1
    election = Election(store)
    assert election.held()
    refused = CliRunner().invoke(app, ["train", "--database", database])
    assert refused.exit_code != 0
    assert "another process is training" in refused.output
    election.give_up()


def test_a_database_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["train", "--database", str(tmp_path / "no" / "folder.sqlite")])
    assert done.exit_code != 0
    assert "expected one for" in done.output
