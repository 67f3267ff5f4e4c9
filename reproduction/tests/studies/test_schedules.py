"""The studies of schedules: who plays for how long and on what, and verdicts that follow the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.engine.schedules import NEAR_EXACT, as_schedule
from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl.storage import encode_for_storage
from o2pl_reproduction.studies import schedules as module
from o2pl_reproduction.studies.schedules import COMPARED, COSTS, COSTS_STUDY, LENGTHS, LONG, SCHEDULES, SCHEDULES_STUDY

ROUNDS = 100


def table_of(units: list[tuple[str, str, int, dict[str, list[float]]]]) -> pa.Table:
    """(world, learner, seed, columns) of each unit."""
    made = [
        {"unit": number, "world": world, "learner": learner, "seed": seed}
        | {name: values[row] for name, values in columns.items()}
        for number, (world, learner, seed, columns) in enumerate(units)
        for row in range(len(columns["round"]))
    ]
    return pa.Table.from_pylist(made)


def played(gap: dict[str, float], seeds: int = 8) -> pa.Table:
    """Regrets of 2 a seed more than the last, and of `gap` a round more than solving every round. T = 50."""
    return table_of(
        [
            (world, learner, seed, {"round": [25, 50], "regret": [7.0, 2.0 * seed + 50 * gap.get(learner, 0.0)]})
            for seed in range(seeds)
            for world in COMPARED
            for learner in module.LABELS
        ]
    )


def verdicts(claims: Any) -> dict[str, bool]:
    return {claim.id.partition("/")[2]: claim.outcome == "met" for claim in claims}


def test_gaps_are_paired_and_a_round() -> None:
    rows = played({"near-exact": 0.004, "geometric": 0.006, "replay": -0.1})
    found = module.gaps(rows)
    for world in COMPARED:
        np.testing.assert_allclose(found[world, "near-exact"], 0.004)
        np.testing.assert_allclose(found[world, "geometric"], 0.006)
        np.testing.assert_allclose(found[world, "replay"], -0.1)
    assert "+0.0060 [+0.0060, +0.0060]" in SCHEDULES_STUDY.table(rows)[0]["gap, geometric (default)"]


def test_verdicts_follow_the_rows() -> None:
    close = verdicts(SCHEDULES_STUDY.claims(played({"near-exact": 0.004, "geometric": 0.006})))
    assert all(close[f"near-exact-{world}"] for world in COMPARED)
    assert not any(close[f"geometric-{world}"] for world in COMPARED)
    far = verdicts(SCHEDULES_STUDY.claims(played({"near-exact": 0.006})))
    assert not any(met for name, met in far.items() if name.startswith("near-exact"))


def test_an_uncertain_gap_is_undecided() -> None:
    world, jumps = next(iter(COMPARED)), [0.0, 0.0, 0.0, 0.4, 0.4, 0.4]  # mean gap .2 / 50 = .004
    rows = table_of(
        [
            (each, learner, seed, {"round": [50], "regret": [jump if learner == "near-exact" else 0.0]})
            for seed, jump in enumerate(jumps)
            for each in COMPARED
            for learner in module.LABELS
        ]
    )
    found = {claim.id: claim for claim in SCHEDULES_STUDY.claims(rows)}[f"schedules/near-exact-{world}"]
    assert found.measured.value == pytest.approx(0.004)
    assert found.verdict == "our own question: undecided"


@pytest.mark.parametrize(("power", "met"), [(0.8, True), (1.05, True), (1.15, False), (2.0, False)])
def test_the_exponent_is_that_of_the_cost(power: float, met: bool) -> None:
    units = []
    for length, share in LENGTHS.items():
        for learner in LONG:
            for seed in range(5):
                t, slow = 1000 * share, 1.0 + seed / 10
                spent = {"cpu_seconds": [slow * t**power], "solves": [5], "evaluations": [40], "mean_reward": [0.5]}
                units.append((length, learner, seed, {"round": [int(t)], **spent}))
    claims = COSTS_STUDY.claims(table_of(units))
    assert [claim.measured.value for claim in claims] == pytest.approx([power] * len(LONG), abs=1e-6)
    assert [claim.outcome == "met" for claim in claims] == [met] * len(LONG)


def test_units_last_as_their_worlds_say_and_share_their_rounds() -> None:
    units = SCHEDULES.units(Options("full", seeds=(0, 1)))
    last = {unit.world["name"]: module._rounds(unit) for unit in units}
    assert last == {"logistic": 5000, "margin": 20_000, "digits": 2000}
    assert {unit.world["name"]: module._rounds(unit) for unit in COSTS.units(Options("full"))} == {
        "short": 10_000,
        "ten-times": 100_000,
        "hundred-times": 1_000_000,
    }
    drawn = {
        (unit.seed, unit.learner["name"]): module._world(unit).weights
        for unit in units
        if unit.world["name"] == "logistic"
    }
    np.testing.assert_array_equal(drawn[0, "exact"], drawn[0, "near-exact"])
    assert not np.allclose(drawn[0, "exact"], drawn[1, "exact"])


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schedules")
    for experiment in (SCHEDULES, COSTS):
        assert not run(experiment, Options("quick", rounds=ROUNDS, seeds=(0, 1)), out=folder, engine=Local(1)).failures
    return folder


def test_a_tiny_run_has_claims_figures_and_a_table(out: Path) -> None:
    for study, lines in ((SCHEDULES_STUDY, len(COMPARED)), (COSTS_STUDY, len(LONG) * len(LENGTHS))):
        name = study.experiment.name
        rows = results(out, name)
        claims = study.claims(rows)
        assert all(claim.experiment == name and np.isfinite(claim.measured.value) for claim in claims)
        assert len(study.table(rows)) == lines
        assert len(study.figures(rows)) == 1
    counted = results(out, "schedule-costs")
    assert (np.asarray(counted["evaluations"]) > np.asarray(counted["solves"])).all()
    assert (np.asarray(counted["solves"]) > 10).all()


def test_the_cells_hold_the_schedules_that_are_named() -> None:
    schedules = {cell.learner["name"]: cell.learner["params"]["schedule"] for cell in SCHEDULES.cells(None)}
    assert schedules == {name: encode_for_storage(as_schedule(name)) for name in module.LABELS}
    assert schedules["near-exact"] == encode_for_storage(NEAR_EXACT) != schedules["geometric"]
