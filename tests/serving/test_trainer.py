"""The trainer: what is learned from, when it is published, and that no outcome is lost or learned twice."""

from __future__ import annotations

import io
import math
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from sqlalchemy import update
from tests.serving.faults import FULL, times
from tests.serving.rows import decision
from tests.serving.worlds import decide, visits

from o2pl.engine.decider import Decider
from o2pl.learners import load
from o2pl.serving import row_reads
from o2pl.serving.batch_writes import DecisionRow, RewardRow
from o2pl.serving.erasure import forget
from o2pl.serving.schema import applications
from o2pl.serving.settings import Kind, LearningMode, Settings, to_json
from o2pl.serving.store import Store
from o2pl.serving.trainer import Trainer
from o2pl.serving.trainer_lease import Lease, lease
from o2pl.serving.training import Training


def learned(store: Store, application: int = 1) -> tuple[int, int]:
    """Rows of the newest model, and outcomes in the store."""
    versions = store.model_versions(application, 1)
    return (versions[0].rows if versions else 0), len(store.outcomes_after(application, limit=10**6))


def test_regret_falls_while_a_service_learns(store: Store, tmp_path: Path) -> None:
    store.add_application("page")
    g, trainer = np.random.default_rng(0), Trainer(store, tmp_path / "state")
    earned = []
    for batch in range(12):
        earned.append(decide(store, visits(150, g), g, f"b{batch}"))
        assert trainer.step(last=True) == 1
    assert learned(store) == (1800, 1800)
    assert abs(earned[0] - 0.4) < 0.08  # uniform
    assert np.mean(earned[-4:]) > 0.74  # the best policy: .8, less the 5 % that explore: .78
    versions = store.model_versions(1)
    assert [row.version for row in versions] == list(range(12, 0, -1))
    assert store.served_version(1) == 12


def test_published_models_are_small_and_hold_no_contexts(store: Store) -> None:
    store.add_application("page")
    g = np.random.default_rng(0)
    text = b'{"reader":{"name":"Zebulon Quagmire"},"_multi":[{"id":"a0"},{"id":"a1"},{"id":"a2"}]}'
    decide(store, [(text, np.array([0.8, 0.2, 0.2]))] * 50 + visits(200, g), g, "a")
    Trainer(store).step(last=True)
    body = store.model_body(1, 1)
    assert isinstance(load(io.BytesIO(body)), Decider)
    assert b"Zebulon" not in body
    assert len(body) < 5000


def test_nothing_new_is_not_published_again(store: Store) -> None:
    store.add_application("page")
    g, trainer = np.random.default_rng(0), Trainer(store)
    assert trainer.step(last=True) == 0  # nothing to learn from
    decide(store, visits(50, g), g, "a")
    assert trainer.step(last=True) == 1
    assert trainer.step(last=True) == 0
    assert Trainer(store).step(last=True) == 0  # another, which has learned the same


def test_models_are_published_no_more_often_than_the_settings_say(store: Store) -> None:
    store.add_application("page", settings=Settings(model_export_frequency=timedelta(hours=1)))
    g, trainer = np.random.default_rng(0), Trainer(store)
    decide(store, visits(50, g), g, "a")
    assert trainer.step() == 1
    decide(store, visits(50, g), g, "b")
    trainer.training[1]._learned_at = -math.inf
    assert trainer.step() == 0
    assert trainer.training[1].rows == 100  # learned, and not published
    store.put_settings(1, Settings(model_export_frequency=timedelta(microseconds=1)))
    assert trainer.step() == 1


def test_the_first_model_is_published_at_once_after_boot(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The monotonic clock often starts at zero when the machine boots."""
    store.add_application("page", settings=Settings(model_export_frequency=timedelta(hours=1)))
    g, trainer = np.random.default_rng(0), Trainer(store)
    clock = SimpleNamespace(monotonic=lambda: since_boot, time=time.time)
    monkeypatch.setattr("o2pl.serving.training.time", clock)
    for since_boot, published in ((0.2, 1), (1800.0, 0), (3600.3, 1)):
        decide(store, visits(50, g), g, f"at {since_boot}")
        assert trainer.step() == published


def test_a_trainer_goes_on_from_its_state_or_from_the_store(store: Store, tmp_path: Path) -> None:
    store.add_application("page")
    g, first = np.random.default_rng(0), Trainer(store, tmp_path / "state")
    decide(store, visits(300, g), g, "a")
    first.step(last=True)
    decide(store, visits(100, g), g, "b")
    with_state, without = Trainer(store, tmp_path / "state"), Trainer(store)
    for trainer in (first, with_state, without):
        trainer.step(last=True)
        assert trainer.training[1].rows == 400
        assert trainer.training[1].cursor == 400
    params = [trainer.training[1].learner._engine.members[0].params for trainer in (first, with_state)]
    assert np.array_equal(*params)
    assert len(list((tmp_path / "state").iterdir())) == 1


def test_a_damaged_state_is_not_used(store: Store, tmp_path: Path) -> None:
    store.add_application("page")
    g = np.random.default_rng(0)
    decide(store, visits(60, g), g, "a")
    Trainer(store, tmp_path).step(last=True)
    (file,) = tmp_path.glob("application-*.o2pl")
    file.write_bytes(file.read_bytes()[:1000])
    again = Trainer(store, tmp_path)
    again.step(last=True)
    assert again.training[1].rows == 60


def test_forgotten_events_are_gone_from_the_learner_and_the_sums(store: Store, tmp_path: Path) -> None:
    store.add_application("page")
    g, trainer = np.random.default_rng(0), Trainer(store, tmp_path / "state")
    decide(store, visits(100, g), g, "a", at=600.0)
    trainer.step(last=True)
    forget(store, store.applications(), events=[f"a-{k}" for k in range(40)])
    assert trainer.step(last=True) == 1
    assert trainer.training[1].rows == 60
    assert len(trainer.training[1].learner.log_) == 60
    (file,) = (tmp_path / "state").iterdir()  # the one with the others is gone
    assert len(load(file).log_) == 60
    (minute,) = store.minutes(1, 0, 10**9)
    assert (minute.decisions, minute.outcomes) == (60, 60)
    assert Trainer(store, tmp_path / "state").step(last=True) == 0


def test_events_that_were_forgotten_while_no_trainer_ran_are_gone_from_the_next_version(
    store: Store, tmp_path: Path
) -> None:
    store.add_application("page")
    g = np.random.default_rng(0)
    decide(store, visits(100, g), g, "a")
    Trainer(store, tmp_path).step(last=True)
    forget(store, store.applications(), events=["a-3"])
    assert Trainer(store, tmp_path).step(last=True) == 1
    assert learned(store) == (99, 99)


def test_other_settings_make_another_learner(store: Store) -> None:
    store.add_application("page")
    g, trainer = np.random.default_rng(0), Trainer(store)
    decide(store, visits(60, g), g, "a")
    trainer.step(last=True)
    store.put_settings(1, Settings(reward_range=(-1.0, 1.0)))
    assert trainer.step(last=True) == 1
    assert trainer.training[1].learner.reward_range == (-1.0, 1.0)
    assert trainer.training[1].rows == 60


def test_logging_only_learns_nothing(store: Store) -> None:
    store.add_application("page", settings=Settings(learning_mode=LearningMode.LOGGING_ONLY))
    g, trainer = np.random.default_rng(0), Trainer(store)
    decide(store, visits(20, g), g, "a")
    assert trainer.step(last=True) == 0
    assert len(store.outcomes_after(1)) == 20


def test_fixed_and_continuous_applications_learn_beside_each_other(store: Store) -> None:
    g, now = np.random.default_rng(0), time.time()
    store.add_application("colours", Kind.FIXED, Settings(actions=("red", "blue", "green")))
    store.add_application("prices", Kind.CONTINUOUS, Settings(bounds=(0.0, 10.0)))
    rows: list[Any] = []
    for k in range(300):
        likes = ("red", "blue")[k % 2]
        names = ["red", "blue", "green"] if k % 3 else ["blue", "red"]  # green was excluded
        action = int(g.integers(len(names)))
        context = f'{{"likes":"{likes}"}}'.encode()
        blank = DecisionRow(1, f"e{k}", "", now, context, str(names).replace("'", '"').encode(), action, None,
                            1 / len(names), None, 0.5, 0.0, 0)  # fmt: skip
        rows += [blank, RewardRow(1, f"e{k}", "", float(names[action] == likes), now)]
        price = float(g.uniform(0, 10))
        paid = float(np.clip(1 - abs(price - 7) / 5, 0, 1))
        number = blank._replace(
            application_id=2, context=b'{"size":%d}' % (k % 5), actions=None, action=None, value=price, propensity=0.1
        )
        rows += [number, RewardRow(2, f"e{k}", "", paid, now)]
    store.add(rows)
    assert Trainer(store).step(last=True) == 2
    colours = load(io.BytesIO(store.model_body(1, 1)))
    assert colours.names == ("red", "blue", "green")
    pi = colours.predict_proba([{"likes": "red"}, {"likes": "blue"}])
    assert pi.argmax(axis=1).tolist() == [0, 1]
    prices = load(io.BytesIO(store.model_body(2, 1)))
    assert abs(prices.means(prices.encoder.encode([{"size": 2}]))[0] - 7) < 1


def test_one_application_that_cannot_be_trained_stops_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Settings that an older version took: its page says so, the others learn; it learns once they are mended."""
    g, trainer = np.random.default_rng(0), Trainer(store)
    for name in ("broken", "whole"):
        store.add_application(name)
    with store.writing() as connection:
        wrong = to_json(Settings()).replace('"randomState":0', '"randomState":-1')
        assert wrong != to_json(Settings())
        connection.execute(update(applications).where(applications.c.name == "broken").values(settings=wrong))
    for application in (1, 2):
        decide(store, visits(150, g), g, f"b{application}", application=application)
    for _ in range(2):
        trainer.step()
    assert learned(store, 1)[0] == 0
    assert learned(store, 2)[0] == 150
    assert caplog.text.count("learning failed") == 1  # it waits before it tries again
    with store.reading() as connection:
        assert "ValueError" in str(row_reads.note(connection, f"{row_reads.FAILED}1"))
        assert row_reads.note(connection, f"{row_reads.FAILED}2") is None
    store.put_settings(1, Settings())
    trainer.step(last=True)
    assert learned(store, 1)[0] == 150
    with store.reading() as connection:
        assert row_reads.note(connection, f"{row_reads.FAILED}1") == ""


def test_events_that_cannot_be_learned_from_are_left_out(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.add_application("page")
    g, trainer = np.random.default_rng(0), Trainer(store)
    decide(store, visits(30, g), g, "a")
    decide(store, visits(3, g), g, "bad", context=b'{"_multi":7}')
    decide(store, visits(30, g), g, "c")
    trainer.step(last=True)
    assert trainer.training[1].rows == 63
    assert len(trainer.training[1].learner.log_) == 60
    assert sum("skipped" in record.message for record in caplog.records) == 3


def test_rows_beyond_the_history_are_dropped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from o2pl.serving import application_learner, training

    monkeypatch.setattr(application_learner, "HISTORY", 1300)
    monkeypatch.setattr(training, "HISTORY", 1300)
    store.add_application("page")
    g, one = np.random.default_rng(0), Trainer(store)
    for batch in range(4):
        decide(store, visits(500, g), g, f"b{batch}")
        one.step(last=True)
    assert one.training[1].rows == 2000
    assert len(one.training[1].learner.log_) == 1300
    assert one.training[1].learner.log_.ids[-1] == 2000
    again = Training(store, store.application("page"), None)
    again.learn()
    assert again.rows == 2000
    assert len(again.learner.log_) == 1300
    assert decide(store, visits(200, g), g, "x") > 0.7


# -- processes


def _train(database: Any, *more: str) -> subprocess.Popen[bytes]:
    code = "from o2pl.cli import main; main()"
    arguments = [sys.executable, "-c", code, "train", "--follow", "--database", str(database), *more]
    return subprocess.Popen(arguments, stderr=subprocess.DEVNULL)


def _wait(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_a_trainer_that_is_killed_at_any_moment_loses_nothing_and_learns_nothing_twice(
    store: Store, tmp_path: Path
) -> None:
    store.add_application("page", settings=Settings(model_export_frequency=timedelta(milliseconds=100)))
    g, database = np.random.default_rng(7), store.engine.url.database
    events = 0
    kills, longest = times(3), 5.0 if FULL else 2.5  # seconds of life; the start takes two
    for kill in range(kills):
        trainer = _train(database)
        try:
            before = learned(store)[0]
            end = time.monotonic() + (g.uniform(1.0, longest) if kill else 120.0)
            while time.monotonic() < end and (kill or learned(store)[0] == before):
                decide(store, visits(20, g), g, f"k{kill}-{events}")
                events += 20
                time.sleep(0.05)
        finally:
            trainer.kill()
            trainer.wait()
        with store.writing() as connection:  # the next one need not wait until the lease of this one ends
            ended = msgspec.structs.replace(lease(connection), at=0.0)
            row_reads.put_note(connection, "trainer", msgspec.json.encode(ended).decode())
    last = _train(database)
    try:
        _wait(lambda: learned(store) == (events, events))
    finally:
        last.send_signal(signal.SIGTERM)
        assert last.wait(20) == 0
    assert len({row.decision_id for row in store.outcomes_after(1, limit=10**6)}) == events
    (file,) = Path(f"{database}.trainer").iterdir()
    assert sorted(load(file).log_.ids.tolist()) == [row.id for row in store.outcomes_after(1, limit=10**6)]


def test_one_process_trains_and_the_next_takes_over_when_it_dies(store: Store) -> None:
    store.add_application("page", settings=Settings(model_export_frequency=timedelta(milliseconds=100)))
    g, database = np.random.default_rng(0), store.engine.url.database
    first = _train(database)
    try:
        decide(store, visits(20, g), g, "a")
        _wait(lambda: learned(store) == (20, 20))
        second, stop, said = Trainer(store), threading.Event(), list[str]()
        thread = threading.Thread(target=second.run, args=(stop, said.append))
        thread.start()
        _wait(lambda: said)
        assert said == ["another process is training; this one waits to take over"]
        decide(store, visits(20, g), g, "b")
        _wait(lambda: learned(store) == (40, 40))
        assert not second.training
    finally:
        first.kill()
        first.wait()
    decide(store, visits(20, g), g, "c")
    _wait(lambda: learned(store) == (60, 60))
    stop.set()
    thread.join(20)
    assert said[1] == "this process is training"


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_service_learns_on_postgresql(store: Store) -> None:
    store.add_application("page")
    g, trainer = np.random.default_rng(0), Trainer(store)
    for batch in range(4):
        earned = decide(store, visits(200, g), g, f"b{batch}")
        assert trainer.step(last=True) == 1
    assert learned(store) == (800, 800)
    assert earned > 0.65


def test_events_that_are_kept_no_longer_are_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("o2pl.serving.trainer._PRUNE", 0.0)
    store.add_application("shop", settings=Settings(log_retention_days=1))
    store.add([decision("old", decided_at=time.time() - 90_000), decision("new", decided_at=time.time())])
    Trainer(store).step()
    assert [row.event_id for row in store.decisions_after(1)] == ["new"]


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_trainer_that_lost_its_lease_begins_anew(store: Store) -> None:
    store.add_application("page", settings=Settings(model_export_frequency=timedelta(milliseconds=100)))
    g, trainer, stop, said = np.random.default_rng(0), Trainer(store), threading.Event(), list[str]()
    thread = threading.Thread(target=trainer.run, args=(stop, said.append))
    thread.start()
    try:
        decide(store, visits(20, g), g, "a")
        _wait(lambda: learned(store) == (20, 20))
        with store.writing() as connection:
            row_reads.put_note(
                connection, "trainer", msgspec.json.encode(Lease("another", 1, time.time() - 3600)).decode()
            )
        _wait(lambda: len(said) >= 2)
        decide(store, visits(20, g), g, "b")
        _wait(lambda: learned(store) == (40, 40))
    finally:
        stop.set()
        thread.join(20)
    assert said == ["this process is training"] * 2
