"""SCRM and O2PL in batches: the valuation against simulation, the rollouts, and the rule of the verdicts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from o2pl.environments import Advertising, Pricing, Toy
from o2pl.experiments import Local, Options, results, run, scrm_table
from o2pl.experiments.batches import best_scrm
from o2pl.experiments.description import built
from o2pl.experiments.scrm_table import PAPER_RESULTS, SCRM_TABLE, final_losses, valuation
from o2pl.experiments.summary import final_values

EXPERIMENT = SCRM_TABLE.experiment


@pytest.mark.parametrize(("world", "scale"), [(Pricing(), 0.5), (Advertising(), 0.3), (Toy(norm=1.045), 0.5)])
def test_the_valuation_agrees_with_simulation(world, scale: float):
    def means(contexts):
        return world.logging_means(contexts) + 0.5 + 0.2 * contexts[:, 0].astype(np.float64)

    n, rng = 400_000, np.random.default_rng(5)
    rounds = world.sample(n, rng)
    losses = rounds.losses(np.arange(n), means(rounds.contexts) + scale * rng.standard_normal(n))
    some = world.sample(200, rng)
    at = np.arange(200)
    beyond = some.policy_losses(at, means(some.contexts), scale) - some.expected_losses(
        at, world.best_actions(some.index)
    )
    best = rounds.expected_losses(np.arange(n), world.best_actions(rounds.index))
    errors = [losses.std() / math.sqrt(n), beyond.std() / math.sqrt(200), best.std() / math.sqrt(1_000_000)]
    assert abs(losses.mean() - valuation(world, rows=200)(means, scale)) < 3.9 * math.hypot(*errors)  # level 1e-4


def test_cells_hold_the_papers_batches_and_every_encoding():
    cells = EXPERIMENT.cells(None)
    batches = {c.world["name"]: (c.world["scheme"], c.world["first"], c.world["count"]) for c in cells}
    assert batches["pricing-uniform"] == batches["toy-uniform"] == ("uniform", 1500, 10)
    assert batches["advertising-doubling"] == ("doubling", 150, 10)
    assert batches["syn-5-01-uniform"] == ("uniform", 1500, 5)
    assert batches["syn-20-10-doubling"] == ("doubling", 240, 5)
    assert len(batches) == 14
    for cell in cells:
        params = cell.learner["params"]
        if cell.world["name"].startswith("syn") and cell.learner["name"] == "o2pl-uncentred":
            right = -1.0 - params["baseline"]  # y - b of the right class, whose loss y is -1
            assert right == {"01": 0.0, "10": -1.0}[cell.world["name"].split("-")[2]]
        if cell.learner["class"] == "SCRM":
            assert (params["tau"], params["memory"]) == (0.001, "last")


def final(world: str, learner: str, rounds: int, seed: int = 5) -> float:
    (unit,) = EXPERIMENT.units(Options(rounds=rounds, seeds=[seed], datasets=[world], learners=[learner]))
    columns = EXPERIMENT.run(unit)
    assert columns["seen"][-1] <= rounds
    return float(columns["loss"][-1])


def test_only_uncentred_learners_feel_the_encoding_of_the_losses():
    for learner, same in (("o2pl", True), ("o2pl-uncentred", False), ("scrm-1", False)):
        found = [final(f"syn-5-{encoding}-doubling", learner, 720) for encoding in ("01", "10")]
        assert (found[0] == found[1]) is same


def test_scrm_starts_at_the_logger(monkeypatch: pytest.MonkeyPatch):
    made = []

    def watched(settings):
        made.append(built(settings))
        return made[-1]

    monkeypatch.setattr(scrm_table, "built", watched)
    final("advertising-uniform", "scrm-1", 1500)
    error = 0.3 / math.sqrt(1500)  # of each coefficient of standardised features; the logger bids N(2, .3²)
    assert np.abs(np.asarray(made[0].start) - [2, 0, 0]).max() < 4.2 * 1.2 * error  # level 1e-4; 1.2: moons correlate


def made(values: dict[tuple[str, str], list[float]]) -> pa.Table:
    """Rows of units with two batches each, the second with the given final loss."""
    columns: dict[str, list] = {name: [] for name in ("unit", "world", "learner", "batch", "seen", "loss")}
    for (world, learner), finals in values.items():
        for loss in finals:
            for batch in (1, 2):
                unit = len(columns["unit"]) // 2
                row = (unit, world, learner, batch, 1500 * batch, loss if batch == 2 else 0.0)
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    return pa.table(columns)


def test_verdicts_follow_the_rows():
    values = {
        ("pricing-uniform", "o2pl-uncentred"): [-5.58, -5.56],
        ("pricing-uniform", "o2pl"): [-5.60, -5.60],
        ("pricing-uniform", "scrm-1"): [-5.30, -5.70],
        ("pricing-uniform", "scrm-3"): [-5.57, -5.59],
        ("advertising-uniform", "o2pl-uncentred"): [-0.715],
        ("advertising-uniform", "scrm-1"): [-0.69],
        ("syn-5-01-doubling", "o2pl-uncentred"): [0.3],
        ("syn-5-01-doubling", "scrm-1"): [0.25],
    }
    rows = made(values)
    assert best_scrm(final_losses(final_values(rows, "loss"), "pricing-uniform")) == "scrm-3"
    found = {claim.id.removeprefix("scrm-table/"): claim for claim in SCRM_TABLE.claims(rows)}
    assert found["pricing-uniform"].measured == pytest.approx(0.01)
    assert found["pricing-uniform"].paper == pytest.approx(-5.419 + 5.355)
    assert found["pricing-uniform-centred"].measured == pytest.approx(-0.02)
    assert "syn-5-01-doubling-centred" not in found
    assert [found[name].met for name in ("pricing-uniform-loss", "advertising-uniform-loss")] == [True, True]
    assert found["advertising-uniform"].verdict == "reproduced under conditions"
    assert found["syn-5-01-doubling"].verdict == "not reproduced"
    values[("advertising-uniform", "o2pl-uncentred")] = [-0.66]
    values[("pricing-uniform", "o2pl-uncentred")] = [-5.5, -5.58]
    changed = {claim.id.removeprefix("scrm-table/"): claim for claim in SCRM_TABLE.claims(made(values))}
    for name in ("advertising-uniform", "advertising-uniform-loss", "pricing-uniform", "pricing-uniform-loss"):
        assert changed[name].verdict == "not reproduced"
    assert changed["pricing-uniform-centred"] == found["pricing-uniform-centred"]


def test_a_run_makes_rows_a_table_and_figures(tmp_path: Path):
    worlds = ["advertising-doubling", "syn-20-01-uniform"]
    options = Options(rounds=1500, seeds=[0], datasets=worlds, learners=["o2pl", "o2pl-uncentred", "scrm-1"])
    report = run(EXPERIMENT, options, out=tmp_path, engine=Local(1))
    assert not report.failures
    rows = results(tmp_path, "scrm-table")
    assert len(rows) == 3 * 3 + 3  # batches of 150, 300 and 600; one of 1500
    shown = SCRM_TABLE.table(rows)
    assert [row["environment"] for row in shown] == ["Syn-20, losses {0, 1}", "Advertising"]
    assert shown[1]["paper, O2PL"] == "{:.3f} ± {:.3f}".format(*PAPER_RESULTS["advertising", "doubling"][1])
    assert set(SCRM_TABLE.figures(rows)) == {"scrm-table-continuous", "scrm-table-discrete", "scrm-table-batches"}
    assert built(EXPERIMENT.cells(None)[0].learner).get_params()["scale"] == 0.5
