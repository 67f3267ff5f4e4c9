from __future__ import annotations

from o2pl.demo.judged import JudgedPolicy, judge


def test_intervals_come_from_the_log_and_the_truth_from_the_labels() -> None:
    found = judge(700, lambda what: None)
    policies = {one.name: one for one in found.policies}
    assert found.rows == 700
    assert set(policies) == {"classifier A", "classifier B", "uniform"}
    assert abs(policies["uniform"].truth - 0.1) < 1e-9  # one of ten is right
    assert policies["classifier A"].truth > policies["classifier B"].truth > 0.3
    assert sum(one.holds for one in found.policies) == 3  # 95 %, all together, at this seed
    assert all(0 <= one.low < one.high <= 1 for one in found.policies)


def test_an_interval_holds_the_truth_or_not() -> None:
    assert JudgedPolicy("a", 0.5, 0.4, 0.6, 0.4).holds
    assert not JudgedPolicy("a", 0.5, 0.4, 0.6, 0.39).holds
