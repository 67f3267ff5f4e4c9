"""SCRM and O2PL in batches: the valuation against simulation, and the rollouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from o2pl.simulation.description import built
from o2pl.simulation.experiment import Options
from o2pl.simulation.worlds import Advertising, Pricing, Toy
from o2pl_reproduction.studies import scrm_table
from o2pl_reproduction.studies.scrm_table import EXPERIMENT, valuation


@pytest.mark.parametrize(("world", "scale"), [(Pricing(), 0.5), (Advertising(), 0.3), (Toy(norm=1.045), 0.5)])
def test_the_valuation_agrees_with_simulation(world: Any, scale: float) -> None:
    def means(contexts: Any) -> Any:
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


def test_cells_hold_the_papers_batches_and_every_encoding() -> None:
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


def test_only_uncentred_learners_feel_the_encoding_of_the_losses() -> None:
    for learner, same in (("o2pl", True), ("o2pl-uncentred", False), ("scrm-1", False)):
        found = [final(f"syn-5-{encoding}-doubling", learner, 720) for encoding in ("01", "10")]
        assert (found[0] == found[1]) is same


def test_scrm_starts_at_the_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def watched(settings: Any) -> Any:
        made.append(built(settings))
        return made[-1]

    monkeypatch.setattr(scrm_table, "built", watched)
    final("advertising-uniform", "scrm-1", 1500)
    error = 0.3 / math.sqrt(1500)  # of each coefficient of standardised features; the logger bids N(2, .3²)
    assert np.abs(np.asarray(made[0].start) - [2, 0, 0]).max() < 4.2 * 1.2 * error  # level 1e-4; 1.2: moons correlate
