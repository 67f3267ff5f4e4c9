from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from bakeoff_rows import SEEDS, SETS, rows_of

from o2pl.errors import InvalidInput
from o2pl_reproduction.studies.bakeoff_learners import BOOK_ARMS, ENTRANTS
from o2pl_reproduction.studies.bakeoff_scores import LABELS, book_scores, published_scores, scores


def test_everyone_has_a_label() -> None:
    assert set(LABELS) == set(ENTRANTS)


def test_rows_of_one_half_are_read_and_must_be_whole() -> None:
    both = pa.concat_tables([rows_of({}, half="tuning"), rows_of({"uniform": 0.5})])
    assert scores(both).rewards["uniform"].mean() == pytest.approx(0.2, abs=0.01)
    assert scores(rows_of({}, half="embedded")).names == tuple(f"{row}_set" for row in range(SETS))
    with pytest.raises(InvalidInput, match="found 239 of uniform, expected 240: every set for each seed"):
        scores(rows_of({}, ["o2pl", "uniform"]).slice(0, 2 * SETS * SEEDS - 1))
    with pytest.raises(InvalidInput, match="none of 'o2pl'"):
        scores(rows_of({}, ["uniform"]))


def test_who_played_fewer_seeds_is_compared_on_those() -> None:
    """The rival is .1 below on seeds 0 to 2, which alone it has played; O2PL itself is .3 lower on the others."""
    rows = rows_of({}, ["o2pl", "uniform"])
    seeds, learner = np.asarray(rows["seed"]), np.asarray(rows["learner"])
    reward = np.asarray(rows["mean_reward"]) - 0.3 * (seeds > 2)
    rows = rows.set_column(rows.schema.get_field_index("mean_reward"), "mean_reward", pa.array(reward))
    found = scores(rows.filter((learner == "o2pl") | (seeds <= 2)))
    assert found.paired("o2pl", "uniform")["o2pl"].shape == (SETS, 3)
    assert found.gaps("o2pl", "uniform") == pytest.approx(0.1, abs=0.01)
    assert found.pair("o2pl", "uniform").gap == pytest.approx(0.1, abs=0.005)
    assert found.on_own_seeds()["o2pl"].shape == (SETS, SEEDS)
    assert list(found.paired("o2pl", "lints")) == ["o2pl"]
    assert found.cpu("uniform") == pytest.approx(0.9 * SETS)


def test_published_sets_and_seeds_of_arms_are_those_that_all_have_played() -> None:
    """The book and its arms played seeds 0 and 1 of the tuning half, the published VW none of it."""
    book = sorted(BOOK_ARMS.names)
    tuning = rows_of({}, book, "tuning")
    place = tuning.schema.get_field_index("world")
    tuning = tuning.set_column(place, "world", pa.array([f"other_{name}" for name in tuning["world"].to_pylist()]))
    rows = pa.concat_tables([rows_of({}), tuning.filter(np.asarray(tuning["seed"]) < 2)])
    assert len(published_scores(rows).names) == SETS
    assert published_scores(rows).rewards["o2pl-book"].shape == (SETS, SEEDS)
    assert book_scores(rows).rewards["o2pl-book"].shape == (2 * SETS, 2)


def test_published_seeds_are_those_of_both_halves() -> None:
    """Everyone played all seeds of one half, and seeds 0 to 5 of the other."""
    tuning = rows_of({}, half="tuning")
    place = tuning.schema.get_field_index("world")
    tuning = tuning.set_column(place, "world", pa.array([f"other_{name}" for name in tuning["world"].to_pylist()]))
    found = published_scores(pa.concat_tables([rows_of({}), tuning.filter(np.asarray(tuning["seed"]) < 6)]))
    assert found.rewards["vw-greedy-published"].shape == (2 * SETS, 6)
    assert scores(rows_of({})).rewards["vw-greedy-published"].shape == (SETS, SEEDS)
