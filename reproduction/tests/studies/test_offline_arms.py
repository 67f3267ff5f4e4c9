"""Pessimism on its own in the offline studies: arms differ in λ and clip alone, and claims follow the rows."""

from __future__ import annotations

import json

import pytest
from offline_rows import rows_of

from o2pl_reproduction.claims.study import Claim, Study
from o2pl_reproduction.studies import offline, offline_arms
from o2pl_reproduction.studies.offline_multiclass import OFFLINE_MULTICLASS
from o2pl_reproduction.studies.offline_synthetic import EASY, OFFLINE_SYNTHETIC
from o2pl_reproduction.studies.overlap import OVERLAP


@pytest.mark.parametrize("study", [OFFLINE_SYNTHETIC, OFFLINE_MULTICLASS, OVERLAP], ids=lambda s: s.experiment.name)
def test_arms_differ_from_their_learner_in_penalty_and_clip_alone(study: Study) -> None:
    params = {cell.learner["name"]: cell.learner["params"] for cell in study.experiment.cells(None)}
    settings = offline.MULTICLASS if study is OFFLINE_MULTICLASS else offline.SYNTHETIC
    for arms in offline_arms.arms_of(settings):
        whole = {
            json.dumps({"penalty": penalty, "clip": "theory" if clip else None})
            for penalty, clip in arms.names.values()
        }
        found = {json.dumps({key: params[name][key] for key in ("penalty", "clip")}) for name in arms.names}
        assert found == whole
        assert len(found) == 2 * len({0.0, 0.1, 1.0, arms.penalty})
        own = params[arms.learner]
        for name in arms.names:
            assert {key for key in own if params[name][key] != own[key]} <= {"penalty", "clip"}
    assert params["o2pl"]["control"] == settings["o2pl"][1]
    assert params["o2pl-paper"]["control"] is None


def claims(values: dict[str, float]) -> dict[str, Claim]:
    rows = rows_of(OFFLINE_SYNTHETIC, values)
    return {claim.id.partition("/")[2]: claim for claim in OFFLINE_SYNTHETIC.claims(rows)}


def test_claims_say_what_penalty_and_clip_are_worth() -> None:
    found = claims(
        {"o2pl": 0.62, "o2pl-penalty-0-clip": 0.6, "o2pl-penalty-1-clip": 0.55, "o2pl-penalty-0-no-clip": 0.61}
    )
    assert found["o2pl-penalty-0.3"].measured.value == pytest.approx(0.02)
    assert found["o2pl-penalty-0.3"].verdict == "our own question: yes"
    assert found["o2pl-penalty-1"].measured.value == pytest.approx(-0.05)
    assert found["o2pl-penalty-1"].verdict == "our own question: no"
    assert found["o2pl-clip-alone"].measured.value == pytest.approx(-0.01)
    assert found["o2pl-pessimism"].measured.value == pytest.approx(0.01)
    assert found["o2pl-penalty-alone"].measured.value == pytest.approx(0.5 - 0.61)  # λ = 0.3 without a clip is worth .5
    assert found["o2pl-negligible"].verdict == "our own question: no"  # more than .005
    assert found["o2pl-paper-pessimism"].measured.value == pytest.approx(0.0)
    assert found["o2pl-paper-negligible"].verdict == "our own question: yes"


def test_where_pessimism_gains_most() -> None:
    found = claims({"o2pl": 0.6, "o2pl-penalty-0-no-clip": 0.6, "o2pl-penalty-0-no-clip@weak-overlap": 0.5})
    weak, other = (found[f"pessimism-most-useful-{task}"] for task in ("weak-overlap", "misspecified"))
    assert weak.measured.value == pytest.approx(0.1)
    assert weak.verdict == "holds for our recipe, not for the paper's"
    assert other.measured.value == pytest.approx(0.0)
    assert other.verdict == "does not hold"
    assert found["o2pl-weak-overlap-pessimism"].measured.value == pytest.approx(0.1)
    assert found["o2pl-misspecified-pessimism"].measured.value == pytest.approx(0.0)
    assert found["o2pl-pessimism"].measured.value == pytest.approx(0.1 / 4)
    assert EASY == ("logistic", "linear-bernoulli")


def test_rows_without_arms_have_no_claims_of_them() -> None:
    rows = rows_of(OFFLINE_SYNTHETIC, {})
    named = rows["learner"].to_pylist()
    rows = rows.filter([not name.startswith(("o2pl-penalty", "o2pl-paper-penalty")) for name in named])
    keys = [claim.id.partition("/")[2] for claim in OFFLINE_SYNTHETIC.claims(rows)]
    assert not [key for key in keys if "pessimism" in key or "penalty" in key]
    assert "beats-dr" in keys
