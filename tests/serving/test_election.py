"""The trainer's lock."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from o2pl.serving.election import Election, someone_trains
from o2pl.serving.store import Store


def eventually(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


@pytest.mark.parametrize("store", ["sqlite", "postgresql"], indirect=True)
def test_the_lock_is_one_processs_at_a_time(store: Store) -> None:
    with Store.open(store.engine.url.render_as_string(hide_password=False)) as again:
        one, two = Election(store), Election(again)
        assert one.held()
        assert one.held()
        assert not two.held()
        one.give_up()
        assert eventually(two.held)  # a server of PostgreSQL takes a moment to end
        assert not one.held()
        two.give_up()


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_the_lock_goes_with_a_connection_that_is_lost(store: Store) -> None:
    one = Election(store)
    assert one.held()
    with store.writing() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
        )
    two, end = Election(store), time.monotonic() + 10
    while not two.held():
        assert time.monotonic() < end
    with pytest.raises(OSError, match="lock"):
        one.held()
    assert not one.held()
    two.give_up()


@pytest.mark.parametrize("store", ["sqlite", "postgresql"], indirect=True)
def test_others_can_see_whether_someone_trains(store: Store) -> None:
    assert not someone_trains(store)
    election = Election(store)
    assert election.held()
    assert someone_trains(store)
    election.give_up()
    assert eventually(lambda: not someone_trains(store))
    assert election.held()  # looking has left nothing behind
    election.give_up()
