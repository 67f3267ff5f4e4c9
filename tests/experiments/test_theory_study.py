from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.experiments import Options, results, run
from o2pl.experiments import theory_study as module
from o2pl.experiments.engines import Local
from o2pl.experiments.theory_study import THEORY


@pytest.mark.parametrize("name", module.PATH_STEPS)
@pytest.mark.parametrize("M", [-3.0, 0.0, 5.0])
def test_steps_have_the_mean_and_the_bound_they_state(name: str, M: float) -> None:
    """100,000 steps from one place: the mean to four standard errors, and |X| ≤ B."""
    X, mean = module.PATH_STEPS[name](np.full(100_000, M), np.random.default_rng(0))
    assert np.abs(X).max() <= module.BOUNDS[name] + 1e-12
    assert X.std() > 0.05
    assert abs(X.mean() - mean[0]) < 4 * X.std() / np.sqrt(len(X))


@pytest.mark.parametrize("name", module.WEIGHTS)
def test_weights_have_mean_one_and_losses_are_in_range(name: str) -> None:
    w, y = module.WEIGHTS[name](3.0, 200_000, np.random.default_rng(1))
    assert abs(w.mean() - 1) < 4 * w.std() / np.sqrt(len(w))
    assert (w >= 0).all()
    assert y.min() >= -1
    assert y.max() <= 0


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out: Path = tmp_path_factory.mktemp("theory")
    report = run(THEORY.experiment, Options("quick", rounds=500, seeds=range(5)), out=out, engine=Local(1))
    assert not report.failures
    return results(out, "theory")


def test_a_tiny_run_has_claims_figures_and_a_table(rows: Any) -> None:
    claims = {claim.id: claim for claim in THEORY.claims(rows)}
    assert all(np.isfinite(claim.measured.value) for claim in claims.values())
    for name in ("crossing-ratio", "clipping-lemma", "clipping-one-sided", "radius-exponent"):
        assert claims[f"theory/{name}"].verdict == "holds as stated"
    assert claims["theory/radius-appendix"].verdict == "does not hold"  # the slip
    assert claims["theory/rates"].measured.method == "exact: nothing is sampled"
    assert module.violations(rows) == 0
    assert set(THEORY.figures(rows)) == {"theory"}
    assert len(THEORY.table(rows)) == len(module.BETAS) * len(module.ENTROPIES) + len(module.NUS) + 1


def test_crossings_of_all_seeds_are_pooled(rows: Any) -> None:
    pooled = module._pooled(rows)
    assert len(pooled) == len(module.PATH_STEPS) * len(module.GRID["v"]) * len(module.GRID["levels"])
    assert {n for *_, n in pooled} == {2500}
    mine = [
        r["measured"]
        for r in rows.to_pylist()
        if r["kind"] == "crossing" and r["world"] == "crossing-signs" and r["z"] == 10
    ]
    first = next(share for world, v, _, share, _ in pooled if world == "crossing-signs" and v == 10)
    per_seed = len(module.GRID["levels"])
    assert first == pytest.approx(np.mean(mine[::per_seed]))


CHANGES = [
    ("crossing", 5.0, "crossing-ratio"),
    ("clipping", 5.0, "clipping-lemma"),
    ("clipping", 5.0, "clipping-sharp"),
    ("clipping", -1.0, "clipping-one-sided"),
    ("rate", 1.2, "rates"),
    ("log-power", 1.2, "log-squared"),
    ("heb", 1.3, "heb-margin"),
    ("heb-single", 0.4, "heb-single"),
]


@pytest.mark.parametrize(("kind", "factor", "name"), CHANGES)
def test_verdicts_follow_the_rows(rows: Any, kind: str, factor: float, name: str) -> None:
    values = np.asarray(rows["measured"]) * np.where(np.asarray(rows["kind"]) == kind, factor, 1.0)
    if kind == "crossing":
        values = np.minimum(values, 1.0)
    changed = rows.set_column(rows.schema.get_field_index("measured"), "measured", pa.array(values))

    def met(table: Any) -> bool:
        return next(claim.outcome == "met" for claim in THEORY.claims(table) if claim.id == f"theory/{name}")

    assert not met(changed)
    assert (module.violations(changed) > 0) == (kind == "crossing")
    if name != "heb-margin":  # which needs more contexts than this
        assert met(rows)
