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
from o2pl_reproduction.studies import exponent_study as module
from o2pl_reproduction.studies.exponent import log_checkpoints
from o2pl_reproduction.studies.exponent_study import EXPONENT


def test_a_power_is_fitted() -> None:
    at = log_checkpoints(100_000)
    regret = np.stack([scale * at**0.3 for scale in (1.0, 2.0, 5.0)])
    regret[:, at < 1000] = 7.0  # what came before the window does not matter
    assert module.fitted(at, regret) == pytest.approx(0.3)
    assert module.fitted_error(at, regret) == pytest.approx(0, abs=1e-9)
    assert np.isnan(module.fitted_error(at, regret[:1]))
    assert module.theory(2.0) == pytest.approx(0.25)


def test_the_jackknife_agrees_with_repetition() -> None:
    """The standard error over repeated draws of 12 curves; 300 repetitions, to a factor of 1.3."""
    generator = np.random.default_rng(0)
    at = np.unique(np.geomspace(10, 1000, 30).astype(np.int64))

    def draw() -> Any:
        powers = generator.normal(0.4, 0.05, (12, 1))
        return at**powers

    slopes, errors = zip(
        *[(module.fitted(at, c), module.fitted_error(at, c)) for c in (draw() for _ in range(300))], strict=True
    )
    assert np.mean(errors) == pytest.approx(np.std(slopes), rel=0.3)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out: Path = tmp_path_factory.mktemp("exponent")
    report = run(EXPONENT.experiment, Options("quick", rounds=300, seeds=range(5)), out=out, engine=Local(1))
    assert not report.failures
    return results(out, "exponent")


def test_a_tiny_run_has_claims_figures_and_a_table(rows: Any) -> None:
    claims = EXPONENT.claims(rows)
    assert len({claim.id for claim in claims}) == len(claims) == 4 * len(module.PENALTY_SCALES) + 4 + 6
    assert all(np.isfinite(claim.measured.value) for claim in claims)
    assert set(EXPONENT.figures(rows)) == {"exponent", "pessimism"}
    assert len(EXPONENT.table(rows)) == len(module.NUS)
    regret = np.asarray(rows["regret"])
    assert (regret >= 0).all()


def test_verdicts_follow_the_rows(rows: Any) -> None:
    def with_exponents(exponents: dict[float, float]) -> dict[str, str]:
        nu, t = np.asarray(rows["nu"]), np.asarray(rows["round"])
        regret = t ** np.array([exponents[each] for each in nu])
        place = rows.schema.get_field_index("regret")
        claims = EXPONENT.claims(rows.set_column(place, "regret", pa.array(regret)))
        return {c.id.removeprefix("exponent/quarter-"): c.verdict for c in claims if "quarter" in c.id}

    right = with_exponents({nu: module.theory(nu) + 0.05 for nu in module.NUS})
    assert set(right.values()) == {"holds as stated"}  # by our λ, and by the paper's
    far = with_exponents({nu: module.theory(nu) + 0.2 for nu in module.NUS})
    assert far["deviation"] == "does not hold"
    assert far["correlation"] == "holds as stated"
    flat = with_exponents({nu: 0.25 + 0.1 * (module.theory(nu) - 0.25) for nu in module.NUS})
    assert flat["regression"] == "does not hold"
    wrong = with_exponents({nu: 0.5 - module.theory(nu) for nu in module.NUS})
    assert {wrong["monotone"], wrong["correlation"], wrong["regression"]} == {"does not hold"}


def test_penalty_and_clip_are_judged_on_their_own(rows: Any) -> None:
    """The clip is above every weight here, so it changes no decision; the penalty's worth follows the rows."""
    found = {claim.id.removeprefix("exponent/algorithm-"): claim for claim in EXPONENT.claims(rows)}
    assert (found["clip"].measured.low, found["clip"].measured.high) == (1.0, 1.0)
    assert found["clip"].verdict == "our own question: no"
    regrets = module.final_regrets(rows)
    assert regrets[module.WITHOUT].shape == (5, len(module.NUS))
    ratios = (regrets[module.WITHOUT].mean(axis=0) / regrets["literal"].mean(axis=0)).tolist()
    assert found["penalty-1"].measured.value == pytest.approx(np.prod(ratios) ** (1 / len(module.NUS)))


def test_some_of_the_penalties_are_enough_for_a_report(rows: Any) -> None:
    some = rows.filter(np.isin(np.asarray(rows["learner"]), ["literal", module.WITHOUT]))
    assert set(EXPONENT.figures(some)) == {"exponent", "pessimism"}
    assert len(EXPONENT.table(some)) == len(module.NUS)
    found = {claim.id: claim.verdict for claim in EXPONENT.claims(some)}
    assert found["exponent/algorithm-clip"] == "our own question: undecided"  # not run


def test_slopes_of_resamples_are_those_that_are_fitted(rows: Any) -> None:
    curves = module._curves(rows)[module.MAIN]
    slopes = module.slopes_of(curves)(*(regret.mean(axis=0)[None] for _, regret in curves.values()))
    assert slopes[0] == pytest.approx([module.fitted(*curve) for curve in curves.values()])


def test_a_recipe_stands_beside_the_papers_penalty(rows: Any) -> None:
    claims = {claim.id: claim for claim in EXPONENT.claims(rows)}
    assert claims["exponent/quarter-deviation"].literal == claims["exponent/literal-deviation"].measured
    alone = rows.filter(np.asarray(rows["learner"]) == "quarter")
    assert np.isnan(next(iter(EXPONENT.claims(alone))).literal.value)


def test_arms_are_drawn_on_the_seeds_that_all_have_played(rows: Any) -> None:
    late = np.char.endswith(np.asarray(rows["learner"]).astype(str), "no-clip") & (np.asarray(rows["seed"]) > 2)
    figure = EXPONENT.figures(rows.filter(~late))["pessimism"]
    assert "mean over 3 seeds" in figure.get_suptitle() + "".join(text.get_text() for text in figure.texts)
