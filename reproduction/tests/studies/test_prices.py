from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl.simulation.worlds import RESPONSES
from o2pl_reproduction.registry import EXPERIMENTS
from o2pl_reproduction.studies.prices import DIALS, PRICES, TUNED, finals, tuning_cells

pytest.importorskip("vowpalwabbit")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: Any) -> Any:
    folder: Path = tmp_path_factory.mktemp("prices")
    chosen = Options("quick", rounds=120, seeds=[0, 1], datasets=["demand", "dose"])
    report = run(PRICES.experiment, chosen, out=folder, engine=Local(1))
    assert not report.failures
    return results(folder, "prices")


def test_every_learner_meets_the_same_rounds(rows: Any) -> None:
    rewards, best = finals(rows, "reward"), finals(rows, "best")
    assert {learner for _, learner in rewards} == {"continuous", "cats", "cats-default"}
    for world in ("demand", "dose"):
        np.testing.assert_array_equal(best[world, "continuous"], best[world, "cats"])
        assert (rewards[world, "continuous"] < best[world, "continuous"]).all()
    assert (finals(rows, "cpu_seconds")["demand", "cats"] > 0).all()


def test_claims_hold_the_mean_lead_over_the_rival(rows: Any) -> None:
    rewards = finals(rows, "reward")
    found = {claim.id: claim for claim in PRICES.claims(rows)}
    assert set(found) == {"prices/demand", "prices/dose"}
    lead = rewards["demand", "continuous"] - rewards["demand", "cats"]
    assert found["prices/demand"].measured.value == pytest.approx(lead.mean())
    assert found["prices/demand"].verdict == "our own question: undecided"  # two seeds


def test_the_table_and_the_figure_show_every_learner(rows: Any) -> None:
    assert len(PRICES.table(rows)) == 6
    assert {row["learner"] for row in PRICES.table(rows)} >= {"VW CATS, tuned"}
    figure = PRICES.figures(rows)["prices"]
    assert len(figure.axes) == 2
    assert len(figure.axes[0].lines) == 5


def test_the_tuned_settings_are_among_those_that_were_tried() -> None:
    assert set(TUNED) == set(RESPONSES)
    for settings in TUNED.values():
        assert all(settings[dial] in values for dial, values in DIALS.items())
    assert len(tuning_cells(None)) == len(RESPONSES) * 6 * 4 * 5
    assert "prices-tuning" in EXPERIMENTS
