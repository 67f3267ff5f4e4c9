"""The wheel study: its features, that all methods share them, and verdicts that follow the rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.errors import InvalidInput
from o2pl.experiments import Options, results, run
from o2pl.experiments.engines import Local
from o2pl.experiments.wheel import FEATURES, LEARNERS, PAPER_WHEEL, TUNED, WHEEL, WHEEL_STUDY, Radial
from o2pl.storage import encode


def rows_of(regrets: dict[str, float], seeds: int = 5) -> pa.Table:
    made: list[dict[str, Any]] = []
    for seed in range(seeds):
        for place, learner in enumerate(LEARNERS):
            for at in (5, 10):
                regret = regrets.get(learner, 1000.0) * at / 10 + seed
                unit = {"unit": seed * len(LEARNERS) + place, "world": PAPER_WHEEL, "learner": learner, "seed": seed}
                made.append(unit | {"round": at, "mean_reward": 1.0, "regret": regret})
    return pa.Table.from_pylist(made)


def verdicts(rows: pa.Table) -> dict[str, bool]:
    return {claim.id.partition("/")[2]: claim.outcome == "met" for claim in WHEEL_STUDY.claims(rows)}


def test_radial_features_are_those_of_the_definition():
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 2)).astype(np.float32)
    slow = [[x, y, x * y, math.sqrt(x * x + y * y), x * x + y * y] for x, y in rows.tolist()]
    features = Radial().transform(Radial().init(2), rows)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, slow, rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidInput, match="found 3 inputs, expected 2"):
        Radial().width(3)


def test_all_methods_of_a_group_see_the_same_features():
    params = {
        cell.learner["name"]: cell.learner["params"] for cell in WHEEL.cells(None) if cell.world["name"] == PAPER_WHEEL
    }
    assert list(TUNED) == list(FEATURES)
    for features in TUNED:
        suffix = "" if features == "linear" else f"-{features}"
        own = params[f"o2pl{suffix}"]["policy"]["fields"]["features"]
        assert own == params[f"linucb{suffix}"]["features"] == params[f"lints{suffix}"]["features"]
        assert own == encode(FEATURES[features])
        assert params[f"o2pl{suffix}"]["baseline"] == -TUNED[features]["o2pl"][0]
        assert (params[f"lints{suffix}"]["scale"], params[f"lints{suffix}"]["ridge"]) == TUNED[features]["lints"]


def test_verdicts_follow_the_rows():
    wins = {name: 300.0 for name in LEARNERS if name.startswith(("o2pl", "paper-"))}
    assert all(verdicts(rows_of(wins)).values())
    close = verdicts(rows_of({**wins, "o2pl": 400.0}))
    assert not close["paper"]
    assert close["same-linear"]
    printed = {claim.id: claim for claim in WHEEL_STUDY.claims(rows_of(wins | {"paper-replay-printed": 900.0}))}
    assert printed["wheel/paper"].verdict == "holds for our recipe, not for the paper's"
    assert printed["wheel/replay"].verdict == "does not hold"
    lost = verdicts(rows_of({**wins, "lints-radial": 290.0}))
    assert not lost["same-radial"]
    assert not lost["any-features"]
    assert lost["same-quadratic"]
    measured = {
        claim.id: claim.measured.value for claim in WHEEL_STUDY.claims(rows_of({**wins, "lints-textbook": 600.0}))
    }
    assert measured["wheel/paper"] == pytest.approx(602 / 302)


def test_a_tiny_run_makes_claims_figures_and_a_table(tmp_path: Path):
    options = Options(rounds=60, seeds=[0, 1])
    assert not run(WHEEL, options, out=tmp_path, engine=Local(1)).failures
    rows = results(tmp_path, "wheel")
    assert set(rows["world"].to_pylist()) == {PAPER_WHEEL}
    assert all(np.isfinite(claim.measured.value) for claim in WHEEL_STUDY.claims(rows))
    assert all(claim.verdict.endswith("undecided") for claim in WHEEL_STUDY.claims(rows))  # two seeds decide nothing
    assert set(WHEEL_STUDY.figures(rows)) == {"wheel", "wheel-features"}
    assert [line["features"] for line in WHEEL_STUDY.table(rows)][: len(TUNED)] == list(TUNED)
    with pytest.raises(InvalidInput, match="found none of \\['uniform'\\]"):
        WHEEL_STUDY.claims(rows.filter(np.asarray(rows["learner"]) != "uniform"))
