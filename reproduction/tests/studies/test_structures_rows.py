from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from structures_table import SETS, rows_of

from o2pl.errors import InvalidInput
from o2pl_reproduction.studies.structures_rows import by_set, gaps, learners_of, one_hot_pair, read_runs, set_means


def test_a_run_is_put_together_from_its_stretches() -> None:
    runs = read_runs(rows_of({("reversal", "bandit"): 0.7}))
    run = runs["drift", "reversal", "26_nursery", "bandit"][3]
    assert run.late == pytest.approx(0.7, abs=0.003)
    assert run.reward == pytest.approx(0.25 * 0.7 + 0.75 * 0.5, abs=0.003)
    assert run.share == pytest.approx((run.reward - 0.2) / 0.8)
    assert run.regret == pytest.approx(800 * (1 - run.reward))
    assert run.rounds == 800
    assert [time for time, _ in run.course] == pytest.approx([(k + 1) / 8 for k in range(8)])
    assert [reward for _, reward in run.course] == pytest.approx([0.5] * 6 + [0.7] * 2, abs=0.003)


def test_stretches_of_unequal_length_count_by_their_length() -> None:
    rows = rows_of({}).to_pylist()
    uneven = [row for row in rows if (row["structure"], row["learner"], row["seed"]) == ("reversal", "bandit", 0)][:2]
    uneven[0] |= {"round": 300, "played": 400, "reward": 0.4}
    uneven[1] |= {"round": 400, "played": 400, "reward": 0.8}
    (seeds,) = read_runs(pa.Table.from_pylist(uneven)).values()
    assert seeds[0].reward == pytest.approx(0.5)
    assert seeds[0].late == pytest.approx(0.8)
    assert seeds[0].regret == pytest.approx(300 * 0.6 + 100 * 0.2)


def test_pairs_are_of_the_runs_that_both_have() -> None:
    runs = read_runs(rows_of({("structures", "boosted-trees"): 0.84}))
    assert len(runs["structures", "rare", "0_set", "boosted-trees"]) == 3
    found = gaps(runs, "structures", ["rare", "noisy"], "bandit", "boosted-trees", "share")
    np.testing.assert_allclose(found, np.full(SETS, (0.9 - 0.84) / 0.8))  # the same noise for both: it cancels
    assert not len(gaps(runs, "drift", ["none"], "bandit", "boosted-trees", "reward"))
    assert "boosted-trees" not in learners_of(runs, "independent")


def test_means_by_set() -> None:
    levels = np.linspace(0.3, 0.8, SETS)
    runs = read_runs(rows_of({("rare", "linucb"): levels}))
    np.testing.assert_allclose(set_means(runs, "structures", ["rare"], "linucb", "reward"), levels, atol=0.001)
    np.testing.assert_allclose(
        set_means(runs, "structures", ["rare", "noisy"], "linucb", "reward"), (levels + 0.8) / 2, atol=0.001
    )
    assert list(by_set(runs, "structures", "rare", "linucb", "reward")) == [f"{place}_set" for place in range(SETS)]


def test_the_pair_of_the_one_hot_sets() -> None:
    losing = np.where(np.arange(SETS) < 2, 0.95, 0.8)
    pair = one_hot_pair(read_runs(rows_of({("one-hot", "linucb"): losing})), "linucb")
    assert str(pair.by_sign) == "12/2"
    assert pair.gap == pytest.approx((12 * 0.1 - 2 * 0.05) / 14)


def test_rows_that_do_not_compare_are_refused() -> None:
    with pytest.raises(InvalidInput, match="none of 'bandit'"):
        read_runs(rows_of({}, left_out=("bandit",)))
    rows = rows_of({})
    kept = [row for row in rows.to_pylist() if (row["learner"], row["seed"], row["set"]) != ("linucb", 4, "3_set")]
    with pytest.raises(InvalidInput, match="found other sets or seeds of linucb"):
        one_hot_pair(read_runs(pa.Table.from_pylist(kept)), "linucb")


def test_the_confirmation_half_comes_before_embedded_sets() -> None:
    rows = rows_of({}).to_pylist()
    embedded = [row | {"half": "embedded", "set": "iris"} for row in rows if row["part"] == "one-hot"]
    both = read_runs(pa.Table.from_pylist(rows + embedded))
    assert not any(key[2] == "iris" for key in both)
    alone = read_runs(pa.Table.from_pylist(embedded))
    assert {key[2] for key in alone} == {"iris"}
