from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl.simulation.worlds import DependentArms
from o2pl_reproduction.studies import dependence as module
from o2pl_reproduction.studies.dependence import DEPENDENCE


def chains(n: int, arms: int, chi: float, seed: int = 0) -> Any:
    """Standardised two-state chains of one correlation, [n, K]."""
    generator = np.random.default_rng(seed)
    flips = np.where(generator.random((n, arms)) < (1 + chi) / 2, 1, -1)
    flips[0] = np.where(generator.random(arms) < 0.5, 1, -1)
    return np.cumprod(flips, axis=0).astype(float)


def test_scores_against_a_plain_loop() -> None:
    values = DependentArms(7, 0.25, 0.9).draw(23, np.random.default_rng(0)).values
    values[:, 2] = 0.3  # never moves
    n, penalty = len(values), 1.7
    literal, kappas, spreads = [], [], []
    for x in values.T:
        mean = sum(x) / n
        squares = sum((each - mean) ** 2 for each in x)
        moved = len(set(x)) > 1
        chi = sum((x[t] - mean) * (x[t + 1] - mean) for t in range(n - 1)) / squares if moved else 0.0
        n_eff = n * (1 - chi) / (1 + chi)
        literal.append(mean + penalty * (squares / (n - 1) / n_eff) ** 0.5 * moved)
        better = min(max((chi + 1 / n) / (1 - 2 / n), 0), 1 - 1 / n)
        kappas.append((1 + 2 * sum((1 - lag / n) * better**lag for lag in range(1, n))) / n)
        spreads.append(squares / n / (1 - kappas[-1]) if moved else np.nan)
    np.testing.assert_allclose(module.svp(values, penalty), literal, rtol=1e-12)
    assert module.svp(values, penalty)[2] == pytest.approx(0.3)
    under_root = np.array(spreads) * kappas
    under_root[2] = np.nanmean(spreads)
    expected = values.mean(axis=0) + penalty * np.sqrt(under_root)
    np.testing.assert_allclose(module.svp_corrected(values, penalty), expected, rtol=1e-12)
    np.testing.assert_array_equal(module.erm(values, penalty), values.mean(axis=0))


def test_if_no_arm_moved_the_means_decide() -> None:
    values = np.tile([0.4, 0.2, 0.3], (5, 1))
    scores = module.svp_corrected(values, 2.5)
    np.testing.assert_allclose(scores, np.array([0.4, 0.2, 0.3]) + 2.5 * 0.5)


@pytest.mark.parametrize("chi", [0.0, 0.4, 0.7])
def test_the_correction_takes_the_bias_out(chi: float) -> None:
    """On 20,000 chains the bias of χ̃ is at most a quarter of that of χ̂, and ṽ and κ are right; four standard errors."""
    n = 60
    values = chains(n, 20_000, chi)
    _, variance, raw = module.moments(values)
    better = (raw + 1 / n) / (1 - 2 / n)  # before it is kept within [0, 1 - 1/n]
    error = better.std() / np.sqrt(len(better))
    assert abs(better.mean() - chi) < abs(raw.mean() - chi) / 4 + 4 * error
    exact = float(module.variance_of_mean(np.array(chi), n))
    spread = variance / (1 - exact)
    assert abs(spread.mean() - 1) < 4 * spread.std() / np.sqrt(len(spread))
    means = values.mean(axis=0)
    assert np.mean(means**2) == pytest.approx(exact, abs=4 * np.std(means**2) / np.sqrt(len(means)))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out: Path = tmp_path_factory.mktemp("dependence")
    report = run(DEPENDENCE.experiment, Options("quick", rounds=5, seeds=range(5)), out=out, engine=Local(1))
    assert not report.failures
    return results(out, "dependence")


def test_a_tiny_run_has_claims_figures_and_a_table(rows: Any) -> None:
    claims = DEPENDENCE.claims(rows)
    assert len({claim.id for claim in claims}) == len(claims)
    assert all(claim.experiment == "dependence" and np.isfinite(claim.measured.value) for claim in claims)
    assert [row["n"] for row in DEPENDENCE.table(rows)] == [str(n) for n in module.LOG_SIZES]
    assert set(DEPENDENCE.figures(rows)) == {"dependence"}
    means = {
        rule: np.mean([x["excess_risk"] for x in rows.to_pylist() if x["learner"] == rule]) for rule in module.RULES
    }
    assert means["svp-corrected"] < means["erm"]


def test_all_rules_of_a_seed_see_the_same_data() -> None:
    """With λ = 0 the paper's rule is ERM: the same trials, the same choices."""
    units = {unit.learner["name"]: unit for unit in DEPENDENCE.experiment.units(Options("quick", rounds=5))[:3]}
    plain = module.run_unit(units["erm"])
    without = module.run_unit(replace(units["svp"], learner={"name": "svp", "penalty": 0.0}))
    np.testing.assert_array_equal(plain["excess_risk"], without["excess_risk"])


def test_verdicts_follow_the_rows(rows: Any) -> None:
    import pyarrow as pa

    def scaled(rule: str, n: int | None, factor: float) -> Any:
        hit = np.array([x["learner"] == rule and n in (None, x["n"]) for x in rows.to_pylist()])
        values = np.asarray(rows["excess_risk"]) * np.where(hit, factor, 1.0)
        place = rows.schema.get_field_index("excess_risk")
        return rows.set_column(place, "excess_risk", pa.array(values))

    def verdict(table: Any, name: str) -> str:
        return next(claim.verdict for claim in DEPENDENCE.claims(table) if claim.id == f"dependence/{name}")

    for name, n in (("ratio-n150", 310), ("ratio-n70", 70), ("literal-n50", 50)):
        assert verdict(scaled("svp", n, 100.0), name) == "does not hold"
        assert verdict(scaled("svp", None, 0.01), name) == "holds as stated"
    assert verdict(scaled("svp", 70, 100.0), "every-n") == "does not hold"
    assert verdict(scaled("svp-corrected", 210, 100.0), "corrected-every-n") == "our own question: no"
    assert verdict(scaled("svp-corrected", None, 0.01), "corrected-every-n") == "our own question: yes"
