"""A store that went back, and a store that is learned from again: the same policy, nothing left out."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.worlds import decide, visits

from o2pl import InvalidInput
from o2pl.serving.application_learner import published
from o2pl.serving.backup import back_up
from o2pl.serving.erasure import forget
from o2pl.serving.settings import LearningMode, Settings
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer
from o2pl.serving.training import rebuilt

BOTH = True
OFTEN = Settings(model_export_frequency=timedelta(microseconds=1))


def learn_in_batches(store: Store, trainer: Trainer, sizes: list[int], seed: int, prefix: str = "b") -> None:
    g = np.random.default_rng(seed)
    for k, size in enumerate(sizes):
        decide(store, visits(size, g), g, f"{prefix}{k}")
        trainer.step(last=True)


def body(store: Store) -> bytes:
    return store.model_body(1, store.model_versions(1, 1)[0].version)


def test_a_restored_backup_is_learned_from_and_what_came_after_it_is_forgotten(tmp_path: Path) -> None:
    """The trainer's state has outcomes that the store has no longer; other ones have taken their ids."""
    database, state = tmp_path / "o2pl.sqlite", tmp_path / "state"
    with Store.open(database) as store:
        store.add_application("page", settings=OFTEN)
        trainer = Trainer(store, state)
        learn_in_batches(store, trainer, [60], 0)
        back_up(store, tmp_path / "copy.sqlite")
        learn_in_batches(store, trainer, [200], 1, "lost")
    for suffix in ("-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "copy.sqlite", database)
    with Store.open(database) as store:
        learn_in_batches(store, Trainer(store, state), [100, 150], 2, "new")
        assert store.model_versions(1, 1)[0].rows == 310


def test_a_store_that_goes_back_under_a_running_trainer_is_noticed(tmp_path: Path) -> None:
    database = tmp_path / "o2pl.sqlite"
    with Store.open(database) as store:
        store.add_application("page", settings=OFTEN)
        trainer = Trainer(store)
        learn_in_batches(store, trainer, [60], 0)
        back_up(store, tmp_path / "copy.sqlite")
        learn_in_batches(store, trainer, [200], 1, "lost")
        for suffix in ("-wal", "-shm"):
            Path(f"{database}{suffix}").unlink(missing_ok=True)
        (tmp_path / "copy.sqlite").replace(database)
        learn_in_batches(store, trainer, [100], 2, "new")
        assert store.model_versions(1, 1)[0].rows == 160
        assert trainer.training[1].rows == 160


@pytest.mark.parametrize("state", [True, False])
def test_a_policy_learned_again_from_the_store_is_the_served_one(store: Store, tmp_path: Path, state: bool) -> None:
    """Whatever the sizes of the batches, and wherever the trainer was stopped."""
    store.add_application("page", settings=OFTEN)
    folder = tmp_path / "state" if state else None
    learn_in_batches(store, Trainer(store, folder), [7, 40, 3, 90, 61], 0)
    g = np.random.default_rng(5)
    decide(store, visits(30, g), g, "more")
    going_on, again = Trainer(store, folder), Trainer(store)
    going_on.step(last=True)
    served = body(store)
    again.step(last=True)
    assert again.training[1].rows == going_on.training[1].rows == 231
    assert published_by(again) == served
    for row in store.model_versions(1):
        assert rebuilt(store, store.application(1), row.version) == (store.model_body(1, row.version), row.rows)
    forget(store, store.applications(), events=["b0-1"])
    with pytest.raises(InvalidInput, match="some of its events were deleted"):
        rebuilt(store, store.application(1), 1)


def test_what_was_not_learned_from_is_not_learned_from_again(store: Store) -> None:
    store.add_application("page", settings=OFTEN)
    trainer = Trainer(store)
    learn_in_batches(store, trainer, [50, 20], 0)
    store.put_settings(
        1, Settings(model_export_frequency=timedelta(microseconds=1), learning_mode=LearningMode.LOGGING_ONLY)
    )
    learn_in_batches(store, trainer, [40], 1, "logged")
    store.put_settings(1, OFTEN)
    learn_in_batches(store, trainer, [30], 2, "learned")
    again = Trainer(store)
    again.step(last=True)
    assert len(again.training[1].learner.log_) == 100
    assert published_by(again) == body(store)


def published_by(trainer: Trainer) -> Any:
    training = trainer.training[1]
    return published(training.application, training.learner)
