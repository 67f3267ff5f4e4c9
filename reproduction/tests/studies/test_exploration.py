"""`exploration`: its runs, and verdicts that follow the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl import Bandit
from o2pl.evaluation.play import play
from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl_reproduction.studies.exploration import (
    ARMS,
    COLUMNS,
    EXPLORATION,
    EXPLORATION_STUDY,
    FIRST_SEED,
    PAGES,
    SEEDS,
    WHEEL,
)

SAMPLES = {"bandit": 1.0, "bandit-0.05": 1.3, "thompson": 1.0, "linucb": 1.1}  # regret


def rows_of(**changes: dict[str, float]) -> pa.Table:
    """Return rows of ten seeds; changes: column -> learner -> what is added to it."""
    made: list[dict[str, Any]] = []
    for world in (*ARMS, *PAGES, WHEEL):
        for learner, regret in SAMPLES.items():
            for seed in range(400 if world == "two-arms" else 10):
                values = {"reward": 0.5, "regret": 100 * regret, "wrong": 0.0, "shown": 0.99, "sure": 0.5}
                values = {name: value + changes.get(name, {}).get(learner, 0.0) for name, value in values.items()}
                made.append({"unit": len(made), "world": world, "learner": learner, "seed": seed} | values)
    return pa.Table.from_pylist(made)


def verdicts(rows: pa.Table) -> dict[str, str]:
    return {claim.id.partition("/")[2]: claim.outcome for claim in EXPLORATION_STUDY.claims(rows)}


def test_verdicts_follow_the_rows() -> None:
    found = verdicts(rows_of())
    assert len(found) == 10
    assert set(found.values()) == {"met"}
    worse = verdicts(rows_of(regret={"bandit": 60.0}, wrong={"bandit": 1.0}, shown={"bandit": -0.1}))
    kept = {"items-reward"}
    assert {key for key, outcome in worse.items() if outcome == "met"} == kept
    assert verdicts(rows_of(reward={"bandit-0.05": 0.01}))["items-reward"] == "missed"
    slightly = verdicts(rows_of(regret={"bandit": 17.0}))
    assert (slightly["two-arms"], slightly["five-arms"], slightly["wheel-mean"]) == ("met", "missed", "missed")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out: Path = tmp_path_factory.mktemp("exploration")
    report = run(EXPLORATION, Options("quick", rounds=520, seeds=range(2)), out=out, engine=Local(1))
    assert not report.failures, report.failures[0][1]
    return results(out, "exploration")


def test_every_learner_plays_every_world(rows: Any) -> None:
    assert len(rows) == 2 * len(EXPLORATION.cells(None))
    found = {(row["world"], row["learner"], row["seed"]): row for row in rows.to_pylist()}
    for (world, learner, _), row in found.items():
        assert row["regret"] >= 0
        assert np.isnan(row["wrong"]) == (world not in ARMS)
        assert np.isnan(row["shown"]) == (world not in PAGES)
        assert np.isnan(row["sure"]) == (not learner.startswith("bandit"))
    assert {row["wrong"] for (world, *_), row in found.items() if world in ARMS} <= {0.0, 1.0}
    assert set(EXPLORATION_STUDY.figures(rows)) == {"regret", "items"}
    table = EXPLORATION_STUDY.table(rows)
    assert len(table) == len(EXPLORATION.cells(None))
    assert {line["runs"] for line in table} == {"2"}


def test_a_unit_is_what_a_plain_loop_makes_of_its_seed(rows: Any) -> None:
    chance, choice = np.random.SeedSequence(FIRST_SEED + 1).spawn(2)
    rounds = ARMS["five-arms"].sample(520, np.random.default_rng(chance))
    seed = int(choice.generate_state(1, np.uint64)[0])
    done = play(Bandit(5, random_state=seed), rounds, every_round=True)
    means = rounds.expected_table[0]
    (row,) = (
        each
        for each in rows.to_pylist()
        if (each["world"], each["learner"], each["seed"]) == ("five-arms", "bandit", 1)
    )
    assert row["regret"] == pytest.approx((means.max() - means[done.actions]).sum())
    assert row["wrong"] == float(np.bincount(done.actions[-500:], minlength=5).argmax() != 4)
    assert row["sure"] == np.mean(done.propensities > 0.99)


def test_worlds_have_their_own_numbers_of_runs_and_rounds() -> None:
    units = EXPLORATION.units(Options("full"))
    of = {world: [unit for unit in units if unit.world["name"] == world] for world in SEEDS}
    assert {world: 1 + max(unit.seed for unit in own) for world, own in of.items()} == SEEDS
    assert (SEEDS["two-arms"], SEEDS[WHEEL]) == (200, 50)
    assert of[WHEEL][0].world["most"] == 10_000
    assert set(COLUMNS) == {"reward", "regret", "wrong", "shown", "sure"}
