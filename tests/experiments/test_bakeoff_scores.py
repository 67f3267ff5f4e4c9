from __future__ import annotations

import pyarrow as pa
import pytest
from bakeoff_rows import SEEDS, SETS, rows_of

from o2pl.errors import InvalidInput
from o2pl.experiments.bakeoff_learners import ENTRANTS
from o2pl.experiments.bakeoff_scores import LABELS, scores


def test_everyone_has_a_label():
    assert set(LABELS) == set(ENTRANTS)


def test_rows_of_one_half_are_read_and_must_be_whole():
    both = pa.concat_tables([rows_of({}, half="tuning"), rows_of({"uniform": 0.5})])
    assert scores(both).rewards["uniform"].mean() == pytest.approx(0.2, abs=0.01)
    assert scores(rows_of({}, half="embedded")).names == tuple(f"{row}_set" for row in range(SETS))
    with pytest.raises(InvalidInput, match="found 239 of uniform, expected 240"):
        scores(rows_of({}, ["o2pl", "uniform"]).slice(0, 2 * SETS * SEEDS - 1))
    with pytest.raises(InvalidInput, match="none of 'o2pl'"):
        scores(rows_of({}, ["uniform"]))
