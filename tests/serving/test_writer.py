"""Group commit: everyone is answered, each with what became of their own entries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest
from tests.serving.rows import decision, reward

from o2pl.errors import InvalidInput
from o2pl.serving.batch_writes import Answer, Entry
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.store import Store
from o2pl.serving.writer import Writer

BOTH = True  # databases


@pytest.fixture
def writer(store: Store) -> Iterator[Writer]:
    made = Writer(store)
    yield made
    made.stop()


def test_threads_and_coroutines(store: Store, writer: Writer) -> None:
    async def many() -> list[list[Answer]]:
        calls = (writer.write([decision(f"e{k % 50}"), reward(f"e{k % 50}")]) for k in range(100))
        return await asyncio.gather(*calls)

    answers = asyncio.run(many())
    assert [first for first, _ in answers].count(Answer.DUPLICATE) == 50
    assert all(second is Answer.STORED for _, second in answers)
    assert writer.submit([decision("e1"), reward("nobody")]).result() == [Answer.DUPLICATE, Answer.UNKNOWN]
    assert len(store.decisions_after(1)) == 50
    assert len(store.rewards_after(1)) == 100


def test_a_bad_entry_is_refused_before_it_waits(store: Store, writer: Writer) -> None:
    with pytest.raises(InvalidInput, match="finite"):
        writer.submit([decision("a"), reward("a", float("nan"))])
    assert store.decisions_after(1) == []


class Failing(Store):
    """As it comes from the disk, or not."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.engine)
        self.error: Exception | None = None
        self.hold = threading.Event()
        self.hold.set()
        self.sizes: list[int] = []

    def add(self, batch):  # type: ignore[no-untyped-def]
        self.hold.wait()
        self.sizes.append(len(batch))
        if self.error is not None:
            raise self.error
        return super().add(batch)


def test_everyone_is_told_and_the_writer_lives_on(store: Store) -> None:
    failing = Failing(store)
    writer = Writer(failing)
    failing.error = StoreUnavailable("gone")

    async def two() -> list[object]:
        return await asyncio.gather(
            writer.write([decision("a")]), writer.write([decision("b")]), return_exceptions=True
        )

    assert [str(error) for error in asyncio.run(two())] == ["gone", "gone"]
    failing.error = None
    assert writer.submit([decision("a")]).result() == [Answer.STORED]
    writer.stop()


def test_what_waits_goes_into_one_transaction_and_room_is_bounded(store: Store) -> None:
    failing = Failing(store)
    writer = Writer(failing, room=5)
    failing.hold.clear()
    first = writer.submit([decision("a")])
    waiting = [writer.submit([decision(name)]) for name in "bcde"]
    assert writer.waiting == 5
    with pytest.raises(StoreUnavailable, match="5 entries are pending"):
        writer.submit([decision("f")])
    failing.hold.set()
    assert first.result() == [Answer.STORED]
    assert [future.result() for future in waiting] == [[Answer.STORED]] * 4
    assert len(failing.sizes) <= 2
    assert sum(failing.sizes) == 5
    assert writer.submit([decision("f")]).result() == [Answer.STORED]
    writer.stop()


def test_one_that_the_database_cannot_take_harms_no_other(store: Store) -> None:
    failing = Failing(store)
    writer = Writer(failing)
    failing.hold.clear()
    first = writer.submit([decision("first")])
    good = writer.submit([decision("good")])
    bad = writer.submit([decision("bad", context=object())])  # no type that a database knows
    failing.hold.set()
    assert first.result() == good.result() == [Answer.STORED]
    with pytest.raises(Exception, match="object"):
        bad.result()
    assert [row.event_id for row in store.decisions_after(1)] == ["first", "good"]
    writer.stop()


def test_stop_writes_what_waits(store: Store) -> None:
    writer = Writer(store)
    futures = [writer.submit([decision(f"e{k}")]) for k in range(100)]
    writer.stop()
    assert all(future.done() for future in futures)
    assert len(store.decisions_after(1)) == 100
    with pytest.raises(StoreUnavailable, match="stopping"):
        writer.submit([decision("late")])


def test_a_caller_that_has_gone_harms_nobody(store: Store, writer: Writer) -> None:
    async def leave() -> list[Answer]:
        task = asyncio.ensure_future(writer.write([decision("a")]))
        await asyncio.sleep(0)
        task.cancel()
        return await writer.write([decision("b")])

    assert asyncio.run(leave()) == [Answer.STORED]
    assert {row.event_id for row in store.decisions_after(1)} == {"a", "b"}  # on disk all the same


@pytest.mark.parametrize(("seconds", "waits"), [(0.0, False), (0.02, True)])
def test_it_waits_for_more_entries_only_after_a_slow_commit(
    store: Store, monkeypatch: pytest.MonkeyPatch, seconds: float, waits: bool
) -> None:
    waited: list[float] = []
    clock = SimpleNamespace(perf_counter=lambda: now[0], sleep=waited.append)
    now, add = [0.0], store.add

    def adding(batch: Sequence[Entry]) -> list[Answer]:
        now[0] += seconds
        return add(batch)

    monkeypatch.setattr("o2pl.serving.writer.time", clock)
    monkeypatch.setattr(store, "add", adding)
    writer = Writer(store)
    threads = [
        threading.Thread(target=lambda k=k: [writer.submit([decision(f"{k}-{n}")]).result() for n in range(30)])
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.stop()
    assert bool(waited) == waits
    assert len(store.decisions_after(1)) == 120
