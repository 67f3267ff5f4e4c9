from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl_reproduction.studies import rates_study as module
from o2pl_reproduction.studies.group_policies import GroupSchedule, joined, rare_groups
from o2pl_reproduction.studies.rates_study import RATES

SEEDS = 6


def rows(off: float = 0.0, lately: float = 0.0, paper: float = 10.0, logs: float = 2.0, price: float = 0.0) -> pa.Table:
    """Curves that go as predicted: T^(ρ + off) and excess T^(ρ - 1 + lately); `price` is added without overlap."""
    at = np.unique(np.round(np.geomspace(10, 1e8, 50)).astype(np.int64))
    scales = {"paper": paper, "tenth": 2.0, "no-penalty": 1.0, "no-clip": 20.0}
    parts = []
    for overlap, beta, p in itertools.product((False, True), module.BETAS, module.FINE):
        for arm, scale in scales.items():
            if overlap and (p == 0 or arm == "no-clip"):
                continue
            for seed in range(SEEDS):
                rate = module.predicted(overlap, beta, p) + (0.0 if overlap else price)
                curve = np.log(at) ** logs if (beta, p) == (1.0, 0.0) else at ** (rate + off)
                noise = scale * np.exp(0.01 * np.random.default_rng(seed).normal())
                parts.append(
                    {
                        "world": [module.world_name(overlap, beta, p)] * len(at),
                        "learner": [arm] * len(at),
                        "seed": [seed] * len(at),
                        "round": at,
                        "regret": noise * curve,
                        "excess": noise * at ** (rate - 1 + lately),
                        "bias": 0.5 * at ** (rate - 1),
                    }
                )
    return pa.concat_tables([pa.table(part) for part in parts])


def verdicts(table: pa.Table) -> dict[str, str]:
    return {claim.id.removeprefix("rates/"): claim.verdict for claim in module.claims(table)}


def test_what_goes_as_predicted_holds() -> None:
    found = verdicts(rows())
    assert {name for name, verdict in found.items() if verdict == "holds as stated"} == {
        "no-overlap-at-most-paper",
        "overlap-at-most-paper",
        "no-overlap-at-most-tenth",
        "overlap-at-most-tenth",
        "log-squared",
        "price-of-no-overlap",
    }
    assert found["no-overlap-attained-paper"] == found["overlap-attained-tenth"] == "our own question: yes"
    assert found["penalty"] == "our own question: no"  # ten times the regret
    assert found["clipping"] == "our own question: yes"


CHANGES: list[tuple[dict[str, float], str, str]] = [
    ({"off": 0.2}, "no-overlap-at-most-paper", "does not hold"),
    ({"off": 0.2}, "overlap-at-most-paper", "does not hold"),
    ({"lately": -0.2}, "no-overlap-attained-paper", "our own question: no"),
    ({"paper": 0.5}, "penalty", "our own question: yes"),
    ({"logs": 3.0}, "log-squared", "does not hold"),
    ({"price": -0.04}, "price-of-no-overlap", "holds in direction, weaker"),
    ({"price": -0.1}, "price-of-no-overlap", "does not hold"),
]


@pytest.mark.parametrize(("changed", "claim", "verdict"), CHANGES)
def test_verdicts_follow_the_rows(changed: dict[str, Any], claim: str, verdict: str) -> None:
    assert verdicts(rows(**changed))[claim] == verdict


def test_the_figure_and_the_table_show_every_world() -> None:
    table = rows()
    assert set(RATES.figures(table)) == {"rates"}
    lines = RATES.table(table)
    assert len(lines) == 15
    first = lines[0]
    assert (first["overlap"], first["β"], first["p"], first["predicted"]) == ("no", "0.5", "0", "0.333")
    assert first["exponent, λ = 1 (the paper's)"].startswith("0.333 [0.333")
    assert lines[-1]["final regret, λ = 1, no clipping"] == "–"
    found = {(line["overlap"], line["β"], line["p"]): line["predicted"] for line in lines}
    assert found["no", "0.5", "1"] == "0.500"
    assert found["yes", "0.5", "1"] == "0.429"
    assert found["no", "1", "0.5"] == found["yes", "1", "0.5"] == "0.200"
    assert found["no", "1", "0"] == "log² T"


def test_worlds_of_fine_groups_alone_have_overlap_and_fewer_arms() -> None:
    cells = module.cells(None)
    assert len(cells) == 9 * 4 + 6 * 3
    for cell in cells:
        assert json.loads(json.dumps(cell.world)) == cell.world
        assert (cell.world["rare"] == 0) == str(cell.world["name"]).startswith("overlap")
        assert (cell.learner["clip"] == "overlap") == (cell.world["rare"] == 0)


def test_regret_is_that_of_the_policies_that_acted() -> None:
    groups = joined(rare_groups(0.5, 12, 0.4))
    at = np.arange(1, 2001)
    played = module.play(groups, GroupSchedule(0.5, 0.0, 0.1), at, np.random.default_rng(0))
    assert played.regret[-1] == pytest.approx(played.excess.sum())
    seldom = np.array([1, 5, 50, 300])
    batches = module.play(groups, GroupSchedule(0.5, 0.0, 0.1), seldom, np.random.default_rng(0))
    assert batches.regret[-1] == pytest.approx(batches.excess @ np.diff(seldom, prepend=0))
    assert played.excess[0] == pytest.approx(groups.excess.sum())  # it starts with the worst policy
    assert played.excess[-1] < played.excess[0] / 2
    assert 0.1 * played.excess[-1] < played.bias < 10 * played.excess[-1]  # clipping acts


def test_solving_less_often_costs_little() -> None:
    """Every round, and whenever the log is 5 % longer: mean regret of 12 runs to four standard errors and 10 %."""
    groups, schedule = joined(rare_groups(0.75, 12, 0.4)), GroupSchedule(0.75, 0.0, 0.1)
    found = []
    for at in (np.arange(1, 501), module.solving_rounds(500, module.GROWTH)):
        runs = [module.play(groups, schedule, at, np.random.default_rng(seed)).regret[-1] for seed in range(12)]
        found.append((np.mean(runs), np.std(runs) / np.sqrt(len(runs))))
    (often, error), (seldom, other) = found
    assert abs(seldom - often) < 0.1 * often + 4 * np.hypot(error, other)


def test_a_tiny_run_makes_curves(tmp_path: Path) -> None:
    worlds = [module.world_name(overlap, 0.5, 0.5) for overlap in (False, True)]
    options = Options("quick", rounds=300, seeds=[0, 1], datasets=worlds, learners=["paper", "no-clip"])
    report = run(RATES.experiment, options, out=tmp_path, engine=Local(1))
    assert not report.failures
    found = results(tmp_path, "rates")
    curves = module._curves(found, "paper")
    assert set(curves) == {(False, 0.5, 0.5), (True, 0.5, 0.5)}
    at, regret = curves[False, 0.5, 0.5]
    assert at[-1] == 300
    assert regret.shape == (2, len(at))
    assert (np.diff(regret, axis=1) >= 0).all()
    assert set(module._curves(found, "no-clip")) == {(False, 0.5, 0.5)}
