from __future__ import annotations

from offline_rows import rows_of, verdicts

from o2pl_reproduction.studies.offline_multiclass import OFFLINE_MULTICLASS


def test_verdicts_of_the_multiclass_study_follow_the_rows() -> None:
    good = verdicts(OFFLINE_MULTICLASS, rows_of(OFFLINE_MULTICLASS, {"o2pl": 0.9}))
    assert not good["one-setting"]
    assert not good["paper-letter"]
    assert all(met for key, met in good.items() if key.startswith(("beats", "level")))
    lost = verdicts(OFFLINE_MULTICLASS, rows_of(OFFLINE_MULTICLASS, {"o2pl": 0.9, "ipw-csc@iris": 0.95}))
    assert lost["beats-ipw-csc"]
    assert not lost["level-with-the-best"]
    same = verdicts(OFFLINE_MULTICLASS, rows_of(OFFLINE_MULTICLASS, {"o2pl-synthetic": 0.9}))
    assert same["one-setting"]
    assert not same["beats-dr"]
