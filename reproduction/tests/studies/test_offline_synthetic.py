from __future__ import annotations

from offline_rows import rows_of, verdicts

from o2pl_reproduction.studies.offline_synthetic import OFFLINE_SYNTHETIC


def test_verdicts_of_the_synthetic_study_follow_the_rows() -> None:
    rows = rows_of(OFFLINE_SYNTHETIC, {"o2pl": 0.6, "dm-arms": 0.7})
    good = verdicts(OFFLINE_SYNTHETIC, rows)
    assert good["beats-ipw-csc"]
    assert good["beats-dr"]
    assert good["beats-dm-additive"]
    assert good["sampled"]
    assert not good["dm-arms"]
    assert not good["paper-letter"]
    made = {claim.id.partition("/")[2]: claim for claim in OFFLINE_SYNTHETIC.claims(rows)}
    assert made["beats-dr"].verdict == "holds for our recipe, not for the paper's"
    assert made["dm-arms"].verdict == "our own question: no"
    one_lost = verdicts(OFFLINE_SYNTHETIC, rows_of(OFFLINE_SYNTHETIC, {"o2pl": 0.6, "dr@misspecified": 0.61}))
    assert one_lost["beats-ipw-csc"]
    assert not one_lost["beats-dr"]
    assert not one_lost["where-it-is-hard-misspecified"]
    assert not one_lost["where-it-is-hard-weak-overlap"]  # as large as elsewhere, and no larger
    sampled = verdicts(OFFLINE_SYNTHETIC, rows_of(OFFLINE_SYNTHETIC, {"o2pl": 0.505}))
    assert sampled["beats-dr"]
    assert not sampled["sampled"]
