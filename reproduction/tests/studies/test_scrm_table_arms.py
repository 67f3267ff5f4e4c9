"""Pessimism on its own in the SCRM table: arms, the scale of losses, and claims that follow the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from o2pl_reproduction.studies import scrm_table_arms
from o2pl_reproduction.studies.scrm_table import ARMS, EXPERIMENT
from o2pl_reproduction.studies.scrm_table_study import SCRM_TABLE

NEITHER = ARMS.name(0.0, False)


def rows_of(losses: dict[tuple[str, str], float]) -> pa.Table:
    """Six seeds of two batches; O2PL's loss after the last one."""
    made = [
        {"unit": 10 * place + seed, "world": world, "learner": learner, "seed": seed, "batch": batch, "seen": batch}
        | {"loss": loss + 0.001 * seed if batch == 2 else 9.0}
        for place, ((world, learner), loss) in enumerate(losses.items())
        for seed in range(6)
        for batch in (1, 2)
    ]
    return pa.Table.from_pylist(made)


def arms(worlds: list[str], better: float) -> dict[tuple[str, str], float]:
    """Every arm loses 0, the learner itself `better` less."""
    return {(world, name): -better * (name == ARMS.learner) for world in worlds for name in ARMS.names}


def test_arms_differ_from_their_learner_in_penalty_and_clip_alone() -> None:
    cells = EXPERIMENT.cells(None)
    assert {world for group in scrm_table_arms.GROUPS for world in scrm_table_arms.worlds(group)} == {
        cell.world["name"] for cell in cells
    }
    for world in ("toy-uniform", "syn-5-01-doubling", "syn-20-10-uniform"):
        params = {cell.learner["name"]: cell.learner["params"] for cell in cells if cell.world["name"] == world}
        own = params[ARMS.learner]
        for name, (penalty, clip) in ARMS.names.items():
            assert {key for key in own if params[name][key] != own[key]} <= {"penalty", "clip"}
            assert (params[name]["penalty"], params[name]["clip"]) == (penalty, "theory" if clip else None)
        letter = params["o2pl-paper"]
        assert {key: letter[key] for key in own if letter[key] != own[key]} == {"penalty": 1.0, "l2": 0.0}


def test_losses_of_continuous_worlds_are_shares_of_the_papers() -> None:
    losses = arms(["pricing-uniform"], 5.355 / 2) | arms(["toy-doubling"], 0.0)
    found = scrm_table_arms.values(rows_of(losses), "continuous", {"pricing-uniform": 5.355, "toy-doubling": 0.458})
    gap = found[NEITHER] - found[ARMS.learner]
    np.testing.assert_allclose(gap, 0.25)  # half of the loss in one of two worlds
    assert scrm_table_arms.values(rows_of(losses), "syn-01", {}) == {}


def test_claims_follow_the_rows() -> None:
    helped = rows_of(arms(["syn-5-01-uniform", "syn-20-01-uniform"], 0.02))
    found = {claim.id.removeprefix("scrm-table/"): claim for claim in scrm_table_arms.claims(helped, {})}
    assert {key.partition("-penalty")[0] for key in found if "penalty" in key} == {"syn-01"}
    assert found["syn-01-penalty-0.1"].measured.value == pytest.approx(0.02)
    assert found["syn-01-penalty-0.1"].verdict == "our own question: yes"
    assert found["syn-01-penalty-1"].verdict == "our own question: no"
    assert found["syn-01-pessimism"].measured.value == pytest.approx(0.02)
    hurt = rows_of(arms(["syn-5-01-uniform"], -0.02))
    found = {claim.id.removeprefix("scrm-table/"): claim for claim in scrm_table_arms.claims(hurt, {})}
    assert found["syn-01-penalty-0.1"].verdict == "our own question: no"


def test_the_report_has_them() -> None:
    losses = arms(["pricing-uniform"], 0.05) | {
        ("pricing-uniform", "scrm-1"): 0.1,
        ("pricing-uniform", "o2pl-paper"): 0.2,
    }
    rows = rows_of(losses)
    claims = {claim.id.removeprefix("scrm-table/"): claim for claim in SCRM_TABLE.claims(rows)}
    assert claims["continuous-pessimism"].measured.value == pytest.approx(0.05 / 5.355)
    assert claims["advantage-paper"].measured.value == pytest.approx(0.1 / -0.064)
    assert claims["advantage-paper"].verdict == "does not hold"
    assert claims["advantage-best-penalty"].measured.value == pytest.approx(0.15 / 0.064)
    assert "scrm-table-pessimism" in SCRM_TABLE.figures(rows)
    assert SCRM_TABLE.table(rows)[0]["O2PL, as printed"].startswith("0.20")
