"""Safe improvement: units against a plain computation, and verdicts that follow the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2pl.errors import InvalidInput
from o2pl.learners.incumbent import SafeImprovement
from o2pl.simulation.experiment import Options
from o2pl.simulation.worlds import Embedded
from o2pl.simulation.worlds.incumbents import IncumbentLog
from o2pl_reproduction.studies import safe_improvement
from o2pl_reproduction.studies.safe_improvement import EXPERIMENT, LOGGERS, FromClone

CANCER = "good/breast-cancer"


@pytest.mark.parametrize("name", ["safe", "plain"])
def test_a_unit_is_what_a_plain_computation_makes_of_its_settings(name: str) -> None:
    (unit,) = EXPERIMENT.units(Options(rounds=300, datasets=[CANCER], learners=[name], seeds=[2]))
    chance, choice = np.random.SeedSequence([2, 300]).spawn(2)
    logged = IncumbentLog(Embedded("breast_cancer")).log(300, np.random.default_rng(chance))
    log = logged.interactions
    learner: Any = SafeImprovement(2, random_state=int(choice.generate_state(1)[0]))
    if name == "plain":
        learner = FromClone(2, baseline="mean", penalty=0.0, clip=None, l2=0.01)
    learner.fit(*log)
    pi = learner.predict_proba(logged.contexts)
    learned = sum(float(p @ means) for p, means in zip(pi, logged.means, strict=True)) / len(pi)
    columns = safe_improvement.run_unit(unit)
    deployed = getattr(learner, "deploy_", True)
    assert columns["n"] == [300]
    assert columns["set"] == ["breast-cancer"]
    assert columns["deployed"] == [deployed]
    assert columns["learned"][0] == pytest.approx(learned)
    assert columns["value"][0] == pytest.approx(learned if deployed else logged.logger_value)
    assert columns["incumbent"][0] == pytest.approx(logged.logger_value)
    assert np.isnan(columns["lower"][0]) == (name == "plain")


def test_a_refusal_is_worth_what_the_incumbent_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_improvement, "LOG_SIZES", (60,))
    (unit,) = EXPERIMENT.units(Options(rounds=60, datasets=["swapped/digits"], learners=["safe"], seeds=[0]))
    columns = safe_improvement.run_unit(unit)  # sixty rows for ten classes
    assert columns["deployed"] == [False]
    assert columns["value"] == columns["incumbent"] == columns["learned"]


def test_sets_take_part_in_the_sizes_they_can_fill() -> None:
    sizes = {}
    for unit in EXPERIMENT.units(Options(rounds=4000, learners=["clone"], seeds=[0])):
        sizes[unit.world["name"]] = safe_improvement.run_unit(unit)["n"]
    assert sizes[CANCER] == [300]  # 341 rows are there
    assert sizes["good/digits"] == [300, 1000]


def test_halves_of_a_folder(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number, rows in ((1, 1000), (2, 100), (3, 1200), (5, 950)):
        columns = {"x": rng.normal(size=rows), "target": rng.integers(0, 2, rows).astype(str)}
        pq.write_table(pa.table(columns), tmp_path / f"{number}_set.parquet")
    folder = str(tmp_path)

    def names(size: str) -> set[str]:
        return {unit.world["name"] for unit in EXPERIMENT.units(Options(size, data=folder, learners=["clone"]))}

    assert names("tuning") == {f"{logger}/{name}" for logger in LOGGERS for name in ("1_set", "3_set")}
    assert names("full") == {f"{logger}/5_set" for logger in LOGGERS}  # 2_set has too few rows
    unit = EXPERIMENT.units(Options("full", rounds=300, data=folder, datasets=["good/5_set"], learners=["clone"]))[0]
    assert folder not in unit.settings
    assert safe_improvement.run_unit(unit)["n"] == [300]


def test_a_unit_with_other_settings_is_refused() -> None:
    unit = EXPERIMENT.units(Options(rounds=300, datasets=[CANCER], learners=["plain"]))[0]
    changed = replace(unit, learner={**unit.learner, "params": {**unit.learner["params"], "l2": 9.0}})
    with pytest.raises(InvalidInput, match="found other settings here"):
        safe_improvement.run_unit(changed)


@pytest.mark.parametrize("baseline", ["random", "mean", "half", "zero"])
def test_baselines(baseline: Any) -> None:
    """Where every row has weight 1 at the start, the gradient there says which b was used."""
    rng = np.random.default_rng(0)
    X, actions = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    rewards, propensities = rng.random(40), rng.uniform(0.3, 1, 40)
    found = FromClone(2, baseline=baseline, penalty=0.0, clip=None, l2=50.0).fit(X, actions, rewards, propensities)
    mean = rewards.mean()
    b = {"random": np.average(rewards, weights=1 / propensities), "mean": mean, "half": mean / 2, "zero": 0.0}[baseline]
    features = found.features.transform(found._seen, X.astype(np.float32)).astype(float)
    logits = features @ found._weights.T
    pi = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    own = pi[np.arange(40), actions]
    pull = -(own / propensities) * (rewards - b) / 40
    gradient = ((np.eye(2)[actions] - pi) * pull[:, None]).T @ features + 50.0 / 40 * found._weights
    assert np.abs(gradient).max() < 1e-4
