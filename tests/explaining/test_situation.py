from __future__ import annotations

import numpy as np
import pytest

import o2pl
from o2pl.explaining.situation import shown_situation, situation


def test_rows_of_the_log_are_contexts_too() -> None:
    generator = np.random.default_rng(0)
    words = o2pl.Bandit(2, policy="hashed", random_state=0)
    for k in range(30):
        words.update(words.act({"id": f"u{k % 3}"}), float(k % 2))
    here = situation(words.snapshot(), (words.log_.contexts[:1], None, None, None))
    assert [one.name for one in here.names[0]] == ["id=u0"]
    assert here.probabilities == pytest.approx(words.predict_proba([{"id": "u0"}])[0])
    assert shown_situation(words.snapshot(), here, 0) == {"id": "u0"}

    items = o2pl.Bandit(random_state=0)
    for _ in range(30):
        user, offered = generator.normal(size=2), generator.normal(size=(3, 2))
        items.update(items.act(user, offered), 1.0)
    by_row = situation(items.snapshot(), (items.log_.contexts[-1:], None, None, None))
    by_pair = situation(items.snapshot(), (user, offered, None, None))
    np.testing.assert_array_equal(by_row.probabilities, by_pair.probabilities)
    assert by_row.actions == by_pair.actions == [0, 1, 2]
    assert by_pair.sets
    with pytest.raises(o2pl.InvalidInput, match="found 30 contexts, expected one"):
        situation(items.snapshot(), (items.log_.contexts, None, None, None))
