"""The store as it is used; what each of its functions does is tested beside them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.serving.rows import decision

from o2pl.serving.batch_writes import Answer
from o2pl.serving.store import Store

BOTH = True  # databases


def test_threads_share_a_store(store: Store) -> None:
    def add(k: int) -> list[Answer]:
        return store.add([decision(f"e{k % 20}")])

    with ThreadPoolExecutor(8) as pool:
        answers = [answer for answers in pool.map(add, range(40)) for answer in answers]
    assert answers.count(Answer.STORED) == answers.count(Answer.DUPLICATE) == 20
    assert [row.id for row in store.decisions_after(1)] == list(range(1, 21))


def test_who_follows_by_number_misses_none(store: Store) -> None:
    """Numbers become visible in order, whoever writes, else "after the last one that I have seen" would lose rows."""
    writers, batches = 3, 40  # a commit to disk each
    seen: list[int] = []

    def write(writer: int) -> None:
        with Store.open(store.engine.url.render_as_string(hide_password=False)) as own:
            for k in range(batches):
                own.add([decision(f"e{writer}-{k}-{each}") for each in range(1 + k % 7)])

    with ThreadPoolExecutor(writers) as pool:
        written = [pool.submit(write, writer) for writer in range(writers)]
        over = False
        while not over:
            over = all(each.done() for each in written)
            seen += [row.id for row in store.decisions_after(1, after=seen[-1] if seen else 0)]
        for each in written:
            each.result()
    everything = [row.id for row in store.decisions_after(1, limit=10_000)]
    assert len(everything) == writers * sum(1 + k % 7 for k in range(batches))
    assert seen == everything


def test_two_processes_may_open_it_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(Store.open, [tmp_path / "a.sqlite"] * 4))
    stores[0].add_application("shop")
    assert [store.application("shop").id for store in stores] == [1] * 4
    for store in stores:
        store.close()
