"""A store with versions, and what commands say of it."""

from __future__ import annotations

import numpy as np
from tests.serving.worlds import decide, visits
from typer.testing import CliRunner

from o2pl.cli import app
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer


def train(store: Store) -> Store:
    """Versions 1 to 3 of one application."""
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
