"""The bench at tiny sizes and without a clock: the reference does our work, and the page says what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import page, policies, sparse
from benchmarks.bounds import bound
from benchmarks.data import logistic_bandit
from benchmarks.measure import Skipped, of_pairs
from benchmarks.reference import ReplayReference, both_objectives, library
from benchmarks.startup import first_use
from benchmarks.table import BENCH, met

from o2pl import O2PL
from o2pl.experiments.experiment import available


@pytest.fixture
def _compiler() -> None:
    try:
        library()
    except Skipped as reason:
        pytest.skip(str(reason))


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(("n", "d", "n_actions", "threads"), [(37, 4, 3, 1), (1537, 21, 5, 2), (700, 9, 13, 3)])
def test_the_reference_computes_our_objective(n: int, d: int, n_actions: int, threads: int) -> None:
    ours, reference, params = both_objectives(n, d, n_actions, threads, seed=n)
    (value, gradient), (its_value, its_gradient) = ours(params), reference(params)
    assert its_value == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(its_gradient, gradient, atol=1e-6)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize("both", [policies.both_actionwise, policies.both_gaussian])
@pytest.mark.parametrize("rows", [6, 2000])
def test_the_reference_computes_our_objectives_of_other_policies(both: Any, rows: int) -> None:
    ours, reference, params = both(rows, d=7, seed=rows)
    (value, gradient), (its_value, its_gradient) = ours(params), reference(params)
    assert its_value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(its_gradient, gradient, atol=1e-12)
    assert np.abs(gradient).max() > 1e-3


def test_loops_of_other_policies_learn() -> None:
    sets, targets = policies.logistic_sets(400, d=5), policies.linear_targets(400, d=2)
    assert policies.our_sets_loop(*sets) > np.mean([np.mean(row) for row in sets[1]]) + 0.1
    assert policies.our_rows_loop(*targets) > 0.3
    if available("vowpalwabbit"):
        assert policies.vw_sets_loop(*sets) > 0.5
        assert policies.vw_rows_loop(*targets) > 0.1


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(("n", "nonzeros", "slots", "n_actions"), [(40, 3, 9, 2), (700, 20, 300, 5), (500, 7, 50, 11)])
def test_the_sparse_reference_computes_our_objective(n: int, nonzeros: int, slots: int, n_actions: int) -> None:
    ours, reference, params = sparse.both_objectives(n, nonzeros, slots, n_actions, seed=n)
    gradient, its_gradient = np.empty_like(params), np.empty_like(params)
    assert reference(params, its_gradient) == pytest.approx(ours(params, gradient), rel=1e-5)
    np.testing.assert_allclose(its_gradient, gradient, atol=1e-6)
    assert np.abs(gradient).max() > 1e-3


def test_words_are_learned_from() -> None:
    contexts, rewards, means = sparse.word_bandit(600, 5)
    assert sum(len(own) for own in contexts[0].values()) == 20
    assert sparse.our_loop(contexts, rewards.tolist(), "geometric") > means.mean() + 0.03


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize(("d", "n_actions"), [(4, 3), (20, 5), (30, 12)])
def test_the_reference_makes_our_decisions(d: int, n_actions: int) -> None:
    contexts, rewards = logistic_bandit(600, d, n_actions)
    contexts[:, 0] = contexts[:, 0] > 0  # a binary column is left as it is
    contexts[:, 1] = 7.0  # and one that never varies says nothing
    ours = O2PL(n_actions, policy="linear", schedule="replay", random_state=3).run((contexts, rewards))
    actions, propensities = ReplayReference(d, n_actions, seed=3).run(contexts, rewards)
    np.testing.assert_array_equal(actions, ours.actions)
    np.testing.assert_allclose(propensities, ours.propensities, rtol=1e-2)
    assert ReplayReference(d, n_actions, seed=3).loop(contexts, rewards.tolist()) == pytest.approx(ours.mean_reward)


def test_ratios_are_of_pairs() -> None:
    row = of_pairs([(4.0, 2.0), (9.0, 3.0), (1.0, 1.0)], "x")
    assert row == (4.0, 2.0, 2.0, 1.0, 3.0, "x", "")


@pytest.mark.parametrize(
    ("bar", "found", "verdict"),
    [
        ("≥ 10", {"ratio": 10.0}, True),
        ("≥ 10", {"ratio": 9.9}, False),
        ("≤ .5", {"ratio": 0.5}, True),
        ("≤ .5", {"ratio": 0.6}, False),
        ("gap ≤ .005", {"ratio": 0.9, "o2pl": 0.796, "peer": 0.8}, True),
        ("gap ≤ .005", {"ratio": 0.9, "o2pl": 0.79, "peer": 0.8}, False),
        ("value ≤ .5", {"ratio": 0.1, "o2pl": 0.6, "peer": 6.0}, False),
        ("value ≤ .5", {"ratio": 9.0, "o2pl": 0.45, "peer": 0.05}, True),
        ("", {"ratio": 1.0}, None),
        ("≥ 10", {"skipped": "why"}, None),
    ],
)
def test_bars(bar: str, found: dict[str, float], verdict: bool | None) -> None:
    assert met(bar, found) is verdict


def test_first_use_starts_from_an_empty_cache_and_then_from_a_full_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    work = f"""
import os, pathlib, time
folder = pathlib.Path(os.environ["NUMBA_CACHE_DIR"])
with open({str(log)!r}, "a") as file:
    print(len(list(folder.iterdir())), file=file)
end = time.process_time() + (0 if (folder / "kept").exists() else 0.5)
while time.process_time() < end:
    pass
(folder / "kept").touch()
"""
    row = first_use(("-c", work), repeats=2)
    assert log.read_text().split() == ["0", "1", "0", "1"]
    assert row.ours >= 0.5
    assert row.ratio > 2


def test_every_bar_can_be_read() -> None:
    stored = {"o2pl": 1.0, "peer": 1.0, "ratio": 1.0}
    assert all(met(bench.bar, stored) is not None for bench in BENCH.values() if bench.bar)


def _results() -> dict[str, Any]:
    """Every row, at numbers that miss all bars."""

    def row(bar: str) -> dict[str, Any]:
        ratio, peer = (0.01, 400.0) if "≥" in bar else (50.0, 400.0)
        ours = 1.0 if "gap" in bar else ratio * peer
        return {"o2pl": ours, "peer": peer, "ratio": ratio, "low": ratio, "high": ratio, "unit": "u", "bar": bar}

    found = {name: row(bench.bar) for name, bench in BENCH.items()}
    return {"about": page.about(), **found, "loop_20x5_river": {"skipped": "not there", "bar": ""}}


def test_the_page_shows_every_row_and_names_what_is_missed_and_skipped() -> None:
    results = _results()
    text = page.rendered(results)
    _, missed = text.split("## Bars that are missed")
    for name, bench in BENCH.items():
        assert f"`{name}`" in text
        assert (f"- `{name}`: " in missed) == bool(bench.bar or name == "loop_20x5_river")
    assert "not there" in missed


def test_the_roofline_of_a_batch() -> None:
    results = _results()
    results["machine_copy"]["o2pl"], results["machine_sgemm"]["o2pl"] = 9.2, 100.0
    # 1e6 rows of 92 bytes at 9.2 GB/s; 4e8 operations at 100 GFLOP/s
    assert "takes 10.0 ms" in bound("batch_1e6x20x5", results)
    assert "rate 4.0 ms" in bound("batch_1e6x20x5", results)


def test_the_page_is_that_of_the_results() -> None:
    root = Path(__file__).parents[1]
    if not (root / "docs" / "benchmarks.md").exists():
        pytest.skip("no page yet")
    assert page.PAGE.read_text() == page.rendered(page.stored())
