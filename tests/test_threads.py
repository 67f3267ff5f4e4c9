from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import threadpoolctl

from o2pl import threads


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"}


def test_every_part_is_done_once_with_one_blas_thread_and_it_is_given_back() -> None:
    before = blas_threads()
    for parts in (0, 1, 2, 9):
        done: list[tuple[int, set[int]]] = []
        threads.in_threads(lambda part, done=done: done.append((part, blas_threads())), parts)
        assert sorted(part for part, _ in done) == list(range(parts))
        assert all(seen == {1} for _, seen in done)
    assert blas_threads() == before


def test_small_problems_are_left_alone() -> None:
    before = blas_threads()
    with threads.one_blas_thread(10):
        assert blas_threads() == before
    with threads.one_blas_thread(1e9):
        assert blas_threads() == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("items", [0, 1, 2, 7])
def test_work_ahead_comes_in_order(count: int, items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_given_threads", lambda: count)
    where = set()

    def work(item: int) -> int:
        time.sleep(0.001 * (items - item))  # the first takes longest
        where.add(threading.current_thread())
        return item * item

    assert list(threads.ahead_in_threads(work, iter(range(items)))) == [item * item for item in range(items)]
    assert (threading.current_thread() in where) == (items > 0 and (count == 1 or items == 1))


def test_work_ahead_takes_few_items_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_given_threads", lambda: 2)
    taken: list[int] = []
    found = threads.ahead_in_threads(lambda item: item, (taken.append(item) or item for item in range(100)))
    assert next(found) == 0
    assert len(taken) <= 4
    found.close()


@pytest.mark.parametrize("source", [False, True], ids=["work", "items"])
def test_nothing_is_at_work_after_an_error(source: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_given_threads", lambda: 2)
    begun: list[int] = []
    ended: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        time.sleep(0.002 * item)
        ended.append(item)
        if item == 2 and not source:
            raise ValueError("two")
        return item

    def items() -> Iterator[int]:
        for item in range(9):
            if item == 5 and source:
                raise ValueError("two")
            yield item

    with pytest.raises(ValueError, match="two"):
        list(threads.ahead_in_threads(work, items()))
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 9
