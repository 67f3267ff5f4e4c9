from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl_reproduction.studies import chaining_checks, theory_checks
from o2pl_reproduction.studies import theory_study as module
from o2pl_reproduction.studies.theory_study import THEORY


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
    assert set(THEORY.figures(rows)) == {"theory", "chaining"}
    checks, paths = theory_checks, chaining_checks.PATHS
    lines = len(checks.BETAS) * len(checks.ENTROPIES) + len(checks.NUS) + 1
    assert len(THEORY.table(rows)) == lines + len(chaining_checks.PS) * len(paths["n"]) * len(paths["sigmas"])


def test_the_units_of_earlier_runs_stay_what_they_were() -> None:
    """Their rows are stored under a digest of these settings: what is added to the study must not change them."""
    found = {unit.world["name"]: unit for unit in THEORY.experiment.units(Options("full", seeds=[3]))}
    assert found["rates"].settings == (
        '{"learner": {"name": "rates"}, "rounds": 20000, "seed": 3, "world": {"horizon": 1000000000000000.0,'
        ' "name": "rates"}}'
    )
    assert found["crossing-signs"].settings == (
        '{"learner": {"name": "crossing"}, "rounds": 20000, "seed": 3, "world": {"levels": [0.9, 0.7, 0.5, 0.2, 0.05],'
        ' "name": "crossing-signs", "paths": "signs", "steps": 300, "v": [10.0, 30.0, 100.0]}}'
    )


CHANGES = [
    ("crossing", 5.0, "crossing-ratio"),
    ("clipping", 5.0, "clipping-lemma"),
    ("clipping", 5.0, "clipping-sharp"),
    ("clipping", -1.0, "clipping-one-sided"),
    ("rate", 1.2, "rates"),
    ("log-power", 1.2, "log-squared"),
    ("heb", 1.3, "heb-margin"),
    ("heb-single", 0.4, "heb-single"),
    ("transfer", 20.0, "entropy-transfer"),
    ("margin", 2.0, "margin-constant"),
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
