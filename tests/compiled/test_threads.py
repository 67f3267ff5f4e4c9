from __future__ import annotations

import threadpoolctl

from o2pl.compiled import threads


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"}


def test_every_part_is_done_once_with_one_blas_thread_and_it_is_given_back() -> None:
    before = blas_threads()
    for parts in (0, 1, 2, 9):
        done: list[tuple[int, set[int]]] = []
        threads.side_by_side(lambda part, done=done: done.append((part, blas_threads())), parts)  # type: ignore[misc]
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
