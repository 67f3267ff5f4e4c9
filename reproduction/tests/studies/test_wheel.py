"""The wheel study: verdicts that follow the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.errors import InvalidInput
from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl_reproduction.studies.wheel import PAPER_WHEEL, WHEEL, WHEEL_STUDY
from o2pl_reproduction.studies.wheel_learners import ARMS, LEARNERS, TUNED


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


def test_verdicts_follow_the_rows() -> None:
    wins = {name: 300.0 for name in LEARNERS if name.startswith(("o2pl", "paper-", "bandit"))}
    found = verdicts(rows_of(wins))
    of_arms = {key for key in found if key.startswith(tuple(ARMS))}
    assert all(is_met for key, is_met in found.items() if key not in of_arms)
    assert {key for key in of_arms if found[key]} == {f"{name}-negligible" for name in ARMS}  # they are all alike
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
    started = verdicts(rows_of({**wins, "linucb-head-start": 200.0}))
    assert not started["head-start-linear"]
    assert started["same-linear"]
    assert not started["bandit-tuned"]
    helped = verdicts(rows_of({**wins, "o2pl-default-penalty-0-clip": 600.0}))
    assert helped["o2pl-default-penalty-0.1"]
    assert not helped["o2pl-default-clip"]
    measured = {
        claim.id: claim.measured.value for claim in WHEEL_STUDY.claims(rows_of({**wins, "lints-textbook": 600.0}))
    }
    assert measured["wheel/paper"] == pytest.approx(602 / 302)


def test_a_tiny_run_makes_claims_figures_and_a_table(tmp_path: Path) -> None:
    options = Options(rounds=60, seeds=[0, 1])
    assert not run(WHEEL, options, out=tmp_path, engine=Local(1)).failures
    rows = results(tmp_path, "wheel")
    assert set(rows["world"].to_pylist()) == {PAPER_WHEEL}
    assert all(np.isfinite(claim.measured.value) for claim in WHEEL_STUDY.claims(rows))
    assert all(claim.verdict.endswith("undecided") for claim in WHEEL_STUDY.claims(rows))  # two seeds decide nothing
    assert set(WHEEL_STUDY.figures(rows)) == {"wheel", "wheel-features", "pessimism"}
    assert [line["features"] for line in WHEEL_STUDY.table(rows)][: len(TUNED)] == list(TUNED)
    with pytest.raises(InvalidInput, match="found none of \\['uniform'\\]"):
        WHEEL_STUDY.claims(rows.filter(np.asarray(rows["learner"]) != "uniform"))
