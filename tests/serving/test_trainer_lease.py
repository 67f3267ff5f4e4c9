"""The trainer's lease."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from o2pl.serving import trainer_lease
from o2pl.serving.store import Store
from o2pl.serving.trainer_lease import Election, Lease, LeaseLost, lease, someone_trains

BOTH = True


def eventually(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def note(store: Store) -> Lease:
    with store.reading() as connection:
        return lease(connection)


def test_the_lease_is_one_processs_at_a_time(store: Store) -> None:
    with Store.open(store.engine.url.render_as_string(hide_password=False)) as again:
        one, two = Election(store), Election(again)
        assert one.held()
        assert one.held()
        assert not two.held()
        one.give_up()
        assert two.held()
        assert not one.held()
        two.give_up()


def test_the_lease_of_a_process_that_is_gone_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.writing() as connection:
        trainer_lease._put(connection, Lease("gone", 7, time.time() + 30))  # its clock is ahead
    two = Election(store)
    assert not two.held()
    monkeypatch.setattr(trainer_lease, "LEASE", 0.3)
    assert not two.held()  # it may have been renewed just before
    assert eventually(two.held)
    two.give_up()
    with store.writing() as connection:
        trainer_lease._put(connection, Lease("long gone", 7, time.time() - 3600))
    assert two.held()  # at once
    two.give_up()


def test_a_holder_renews_its_lease(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_lease, "BEAT", 0.02)
    one = Election(store)
    assert one.held()
    assert eventually(lambda: note(store).beat > 2)
    assert someone_trains(store)
    one.give_up()
    assert note(store) == Lease()
    assert not someone_trains(store)


def test_a_trainer_that_hangs_loses_its_lease(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_lease, "BEAT", 0.02)
    monkeypatch.setattr(trainer_lease, "HUNG", 0.2)
    called: list[bool] = []
    one = Election(store, lambda: called.append(True))
    assert one.held()
    for _ in range(20):  # progress, though not by `held`
        time.sleep(0.02)
        one.progress()
    assert not called
    assert eventually(lambda: bool(called))
    beat = note(store).beat
    time.sleep(0.1)
    assert note(store).beat == beat
    one.give_up()


def test_a_holder_that_lost_its_lease_writes_nothing(store: Store) -> None:
    one = Election(store)
    assert one.held()
    fenced = store.fenced(one.check)
    fenced.put_note("a", "1")
    with store.writing() as connection:
        trainer_lease._put(connection, Lease("another", 1, time.time()))
    with pytest.raises(LeaseLost):
        fenced.put_note("a", "2")
    assert store.note("a") == "1"
    assert not one.held()
    one.give_up()
    assert note(store).holder == "another"
