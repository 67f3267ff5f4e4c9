from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from o2pl_reproduction.studies import theory_checks as module


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


def rows() -> pa.Table:
    """Two seeds, two places, of a kind; and one row of another."""
    names = ("seed", "world", "kind", "x", "z", "measured", "reference", "trials")
    lines = [
        (0, "b", "share", 1.0, 2.0, 0.5, 0.9, 100),
        (1, "b", "share", 1.0, 2.0, 0.1, 0.9, 300),
        (1, "a", "share", 1.0, 2.0, 0.3, 0.8, 300),
        (0, "a", "share", 1.0, 2.0, 0.7, 0.8, 100),
        (0, "a", "other", 1.0, 2.0, 9.0, 0.8, 100),
    ]
    return pa.table({name: [line[place] for line in lines] for place, name in enumerate(names)})


def test_shares_of_all_seeds_are_pooled_by_their_trials() -> None:
    assert {world: (share, n) for world, *_, share, n in module.pooled(rows(), "share")} == {
        "b": (pytest.approx(0.2), 400),
        "a": (pytest.approx(0.4), 400),
    }
    assert [row["measured"] for row in module.pick(rows(), "other")] == [9.0]


def test_columns_stand_seed_by_seed_and_place_by_place() -> None:
    measured, reference = module.by_seed(rows(), "share", "measured", "reference")
    assert measured.tolist() == [[0.7, 0.5], [0.3, 0.1]]
    assert reference.tolist() == [[0.8, 0.9], [0.8, 0.9]]


def test_the_margin_worlds_have_the_slope_of_their_exponent() -> None:
    from o2pl.simulation.worlds import Margin
    from o2pl.storage import encode_for_storage

    found = module.heb_margin({"world": encode_for_storage(Margin(1.0))}, 20_000, np.random.default_rng(0))
    kind, nu, _, slope, beta, error, _ = found[-1]
    assert (kind, nu, beta) == ("heb", 1.0, 0.5)
    assert abs(slope - beta) < 4 * error + 0.01
