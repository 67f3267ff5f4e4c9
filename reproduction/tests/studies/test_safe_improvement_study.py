from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.errors import InvalidInput
from o2pl.simulation.experiment import Options
from o2pl_reproduction.studies import safe_improvement
from o2pl_reproduction.studies import safe_improvement_study as study
from o2pl_reproduction.studies.safe_improvement import ARMS, EXPERIMENT, LEARNERS, LOGGERS, NAMED_ARMS
from o2pl_reproduction.studies.safe_improvement_study import SAFE_IMPROVEMENT, ResultRows, mean_interval


def rows_of(values: dict[str, float], sets: int = 12, lower: float = 0.0, spread: float = 0.0) -> pa.Table:
    """Rows as a run would write them: incumbents are worth .5, learners `values` (or .5); sets differ by `spread`."""
    made = []
    for place in range(sets):
        for logger in LOGGERS:
            for learner in LEARNERS:
                for n, seed in product((300, 1000), range(8)):
                    value = values.get(f"{learner}@{logger}", values.get(learner, 0.5))
                    value += spread * (place - (sets - 1) / 2) * (learner == "safe")
                    made.append(
                        {"learner": learner, "logger": logger, "set": f"s{place:02d}", "n": n, "value": value}
                        | {
                            "seed": seed,
                            "incumbent": 0.5,
                            "incumbent_greedy": 0.54,
                            "learned": value,
                            "lower": lower,
                            "deployed": lower > 0,
                        }
                    )
    return pa.Table.from_pylist(made)


def verdicts(rows: Any) -> dict[str, bool]:
    return {claim.id.partition("/")[2]: claim.outcome == "met" for claim in SAFE_IMPROVEMENT.claims(rows)}


def test_intervals_and_gaps_are_over_sets() -> None:
    rows = ResultRows(rows_of({"safe": 0.6, "plain": 0.55}, spread=0.01))
    gaps = rows.by_set("safe", ["good"], [300, 1000], "plain")
    assert gaps == pytest.approx([0.05 + 0.01 * (place - 5.5) for place in range(12)])
    found = mean_interval(gaps)
    error = 0.01 * np.std(np.arange(12)) / np.sqrt(12)
    assert found.mean == pytest.approx(0.05)
    assert found.low == pytest.approx(0.05 - 1.96 * error, abs=0.002)
    assert found.high == pytest.approx(0.05 + 1.96 * error, abs=0.002)
    with pytest.raises(InvalidInput, match="found none of nobody"):
        rows.chosen("nobody", ["good"], [300])


def test_verdicts_follow_the_rows() -> None:
    good = verdicts(rows_of({"safe": 0.6}))
    assert all(met for key, met in good.items() if not key.startswith(("good-", "poor-", "paper-")))
    assert good["pessimism-safe"]
    assert not good["good-clip-alone"]  # no better than neither
    harmful = verdicts(rows_of({"safe": 0.6, "safe@good": 0.49}))
    assert not harmful["harm-good"]
    assert not harmful["harm"]
    assert harmful["plain-blind"]
    assert not harmful["plain-good"]
    assert not harmful["pessimism-safe"]
    assert not verdicts(rows_of({"safe": 0.496}))["lcb"]
    assert verdicts(rows_of({"safe": 0.496}))["harm"]  # .004 below is no harm
    assert not verdicts(rows_of({"safe": 0.53}))["beyond-exploration"]
    assert not verdicts(rows_of({"safe": 0.6}, lower=0.11))["bound"]
    assert not verdicts(rows_of({"safe": 0.6, "lcb-guarded": 0.61}))["lcb-guarded"]
    uncertain = verdicts(rows_of({"safe": 0.505}, spread=0.01))
    assert not uncertain["lcb"]  # .005 ahead, with an interval of ± .02


def test_tiny_units_make_claims_figures_and_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_improvement, "LOG_SIZES", (60, 1000))
    monkeypatch.setattr(study, "LOG_SIZES", (60, 1000))
    parts = []
    for unit in EXPERIMENT.units(Options(rounds=60, seeds=[0], datasets=[f"{each}/breast-cancer" for each in LOGGERS])):
        columns = {"learner": [unit.learner["name"]], "seed": [unit.seed], **safe_improvement.run_unit(unit)}
        assert set(EXPERIMENT.columns) <= set(columns)
        parts.append(pa.table(columns))
    rows = pa.concat_tables(parts)
    assert len(rows) == len(LEARNERS) * len(LOGGERS)
    assert (np.asarray(rows["value"]) <= np.asarray(rows["oracle"]) + 1e-12).all()
    curves, square, arms = SAFE_IMPROVEMENT.figures(rows).values()
    assert len(arms.axes) == len(LOGGERS)
    assert len(curves.axes) == 8
    assert len(square.axes) == 4
    table = SAFE_IMPROVEMENT.table(rows)
    assert len(table) == len(LEARNERS) + 2
    assert len({tuple(line) for line in table}) == 1


def test_pessimism_alone_is_told_by_value_and_by_harm() -> None:
    worse = {f"{name}@good": 0.48 for name in ("neither", "clip")}
    rows = rows_of({"clip-penalty": 0.52, ARMS.name(0.1, True): 0.5, "paper": 0.49} | worse)
    found = {claim.id.partition("/")[2]: claim for claim in SAFE_IMPROVEMENT.claims(rows)}
    assert found["good-penalty-1"].measured.value == pytest.approx(0.04)
    assert found["good-penalty-0.1"].measured.value == pytest.approx(0.02)
    assert found["good-pessimism"].verdict == "our own question: yes"
    assert found["good-clip-alone"].measured.value == pytest.approx(0.0)
    assert found["good-penalty-alone"].measured.value == pytest.approx(0.02)
    assert found["poor-penalty-1"].measured.value == pytest.approx(0.02)
    assert found["good-harm-penalty-1"].measured.value == pytest.approx(1.0)  # all runs without it are harmed
    assert found["poor-harm-pessimism"].measured.value == pytest.approx(0.0)
    assert found["paper-letter"].verdict == "our own question: no"
    assert found["paper-letter-harm"].measured.value == 1.0


def test_arms_differ_in_penalty_and_clip_alone() -> None:
    learners = {name: make(2, None).get_params() for name, make in LEARNERS.items()}
    own = learners[ARMS.learner]
    for name, (penalty, clip) in ARMS.names.items():
        chosen = learners[{arm: each for each, arm in NAMED_ARMS.items()}.get(name, name)]
        assert (chosen["penalty"], chosen["clip"]) == (penalty, "theory" if clip else None)
        assert {key for key in own if key != "features" and chosen[key] != own[key]} <= {"penalty", "clip"}
