from __future__ import annotations

from o2pl.demo.improved import Improvement, improve


def test_a_log_that_supports_it_improves_the_incumbent_and_a_short_one_does_not() -> None:
    said: list[str] = []
    found, short = improve((800, 40), said.append)
    assert said == ["SafeImprovement learns from 800 rows", "SafeImprovement learns from 40 rows"]
    assert (found.rows, found.deploy) == (800, True)
    assert 0 < found.promised < found.gain  # at this seed
    assert (short.rows, short.deploy, short.gain) == (40, False, 0.0)  # the incumbent stays


def test_a_promise_is_kept_or_not() -> None:
    assert Improvement(9, True, 0.1, 0.1, 0.0).kept
    assert not Improvement(9, True, 0.1, 0.09, 0.0).kept
    assert Improvement(9, False, 0.1, 0.0, 0.0).kept
