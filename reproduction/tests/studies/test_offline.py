"""The studies of offline learning: a unit against a plain computation, and verdicts that follow the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from offline_rows import rows_of

from o2pl import O2PL
from o2pl.errors import InvalidInput
from o2pl.simulation.engines import Local
from o2pl.simulation.experiment import Options
from o2pl.simulation.rivals.reductions import IPWClassifier
from o2pl.simulation.runner import run
from o2pl.simulation.store import results
from o2pl.simulation.worlds import LOGGED_TASKS
from o2pl_reproduction.claims.study import Study
from o2pl_reproduction.studies import offline
from o2pl_reproduction.studies.offline_multiclass import OFFLINE_MULTICLASS
from o2pl_reproduction.studies.offline_synthetic import OFFLINE_SYNTHETIC

STUDIES = [OFFLINE_SYNTHETIC, OFFLINE_MULTICLASS]
each_study = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.experiment.name)


@pytest.mark.parametrize("name", ["ipw-csc", "o2pl"])
def test_a_unit_is_what_a_plain_computation_makes_of_its_settings(name: str) -> None:
    (unit,) = OFFLINE_MULTICLASS.experiment.units(Options(rounds=60, datasets=["iris"], learners=[name], seeds=[4]))
    chance, choice = np.random.SeedSequence(4).spawn(2)
    logged = LOGGED_TASKS["iris"].log(60, np.random.default_rng(chance))
    log = logged.interactions
    if name == "o2pl":
        seed = int(choice.generate_state(1)[0])
        penalty, control, l2 = offline.MULTICLASS["o2pl"]
        learner: Any = O2PL(3, policy="linear", penalty=penalty, control=control, l2=l2, random_state=seed)
    else:
        learner = IPWClassifier(3, l2=offline.MULTICLASS["ipw-csc"][0])
    learner.fit(*log)
    greedy = sampled = 0.0
    for context, means in zip(logged.contexts, logged.means, strict=True):
        probabilities = learner.predict_proba([context])[0]
        greedy += means[int(np.argmax(probabilities))]
        sampled += sum(p * mean for p, mean in zip(probabilities, means, strict=True))
    columns = OFFLINE_MULTICLASS.experiment.run(unit)
    assert columns["log_rows"] == [60]
    assert columns["value"][0] == pytest.approx(greedy / len(logged.means))
    assert columns["sampled"][0] == pytest.approx(sampled / len(logged.means))
    assert columns["oracle"] == [1.0]
    assert columns["minimum"][0] == pytest.approx(float(np.mean([min(row) for row in logged.logging])))
    if name == "ipw-csc":
        assert columns["value"] == columns["sampled"]


def test_all_learners_of_a_seed_are_given_the_same_log() -> None:
    units = OFFLINE_SYNTHETIC.experiment.units(
        Options(rounds=50, datasets=["logistic"], learners=["dm-arms", "dm-additive"], seeds=[0, 1])
    )
    entropies = {(unit.seed, unit.learner["name"]): OFFLINE_SYNTHETIC.experiment.run(unit)["entropy"] for unit in units}
    assert entropies[0, "dm-arms"] == entropies[0, "dm-additive"] != entropies[1, "dm-arms"]


def test_rivals_have_the_settings_that_the_tables_give() -> None:
    params = {cell.learner["name"]: cell.learner["params"] for cell in OFFLINE_SYNTHETIC.experiment.cells(None)}
    assert tuple(params["dr"][name] for name in ("l2", "clip", "model_l2")) == offline.SYNTHETIC["dr"]
    for name, model in (("dm-additive", "additive"), ("dm-arms", "arms")):
        own = params[name]
        assert ((own["link"], own["level"]), own["l2"]) == offline.SYNTHETIC[name]
        assert own["model"] == model


def test_a_unit_with_other_settings_is_refused() -> None:
    unit = OFFLINE_SYNTHETIC.experiment.units(Options(rounds=50, learners=["o2pl"]))[0]
    changed = replace(unit, learner={**unit.learner, "params": {**unit.learner["params"], "l2": 1.5}})
    with pytest.raises(InvalidInput, match="offline-synthetic/0: found other settings here"):
        OFFLINE_SYNTHETIC.experiment.run(changed)


def test_leads_are_paired_and_against_the_best_rival() -> None:
    rows = rows_of(OFFLINE_SYNTHETIC, {"o2pl": 0.7, "dr": 0.6, "ipw-csc": 0.65, "dr@logistic": 0.69}, seeds=6)
    values = np.asarray(rows["value"]).copy()
    chosen = (np.asarray(rows["learner"]) == "o2pl") & (np.asarray(rows["world"]) == "weak-overlap")
    values[chosen] += np.tile([0.0, 0.03, 0.06], 2)
    rows = rows.set_column(rows.column_names.index("value"), "value", pa.array(values))
    leads = offline.leads(rows, "o2pl", ["dr", "ipw-csc"])
    assert leads["logistic"].mean(axis=0) == pytest.approx([0.01, 0.05])
    assert leads["weak-overlap"][:, 1] == pytest.approx([0.05, 0.08, 0.11] * 2)
    weak = offline.smallest_lead(leads, ["weak-overlap"])
    assert weak.value == pytest.approx(0.08)
    error = 2.57 * np.std([0.05, 0.08, 0.11] * 2, ddof=1) / np.sqrt(6)  # Student's t of five degrees
    assert weak.low == pytest.approx(0.08 - error, abs=0.25 * error)
    everywhere = offline.smallest_lead(leads)
    assert (everywhere.value, everywhere.low) == pytest.approx((0.01, 0.01))  # sure, as all seeds agree there
    assert offline.lead_on_average(leads).value == pytest.approx((0.01 + 0.05 + 0.05 + 0.08) / 4)
    extra = offline.extra_lead(leads, "weak-overlap", ["logistic", "linear-bernoulli"])
    assert extra.value == pytest.approx(0.08 - (0.01 + 0.05) / 2)
    with pytest.raises(InvalidInput, match="rows: found none of dr on logistic"):
        offline.leads(rows.filter(np.asarray(rows["learner"]) != "dr"), "o2pl", ["dr"])


@each_study
def test_a_tiny_run_makes_claims_figures_and_a_table(study: Study, tmp_path: Path) -> None:
    name = study.experiment.name
    report = run(study.experiment, Options(rounds=40, seeds=[0]), out=tmp_path, engine=Local(1))
    assert not report.failures
    rows = results(tmp_path, name)
    claims = study.claims(rows)
    assert len({claim.id for claim in claims}) == len(claims)
    assert all(claim.experiment == name and np.isfinite(claim.measured.value) for claim in claims)
    assert all(claim.verdict.endswith("undecided") for claim in claims)  # one seed decides nothing
    assert (np.asarray(rows["value"]) <= np.asarray(rows["oracle"]) + 1e-12).all()
    figure, arms = study.figures(rows).values()
    assert (len(figure.axes), len(arms.axes)) == (4, 2)
    table = study.table(rows)
    names = {cell.learner["name"] for cell in study.experiment.cells(None)}
    ours = sum(each.startswith("o2pl") and each in offline.LABELS for each in names)  # sampled too
    assert len(table) == len(names) + ours + 2  # the logger, the oracle
    assert len({tuple(line) for line in table}) == 1
