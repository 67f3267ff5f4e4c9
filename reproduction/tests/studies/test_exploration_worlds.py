"""The worlds of `exploration` pay what they say, and pages replace their oldest items."""

from __future__ import annotations

import numpy as np
import pytest

from o2pl.errors import InvalidInput
from o2pl_reproduction.studies.exploration_worlds import Arms, Page


def test_arms_pay_their_rates_in_all_contexts() -> None:
    rounds = Arms((0.2, 0.7), noise=3).sample(20_000, np.random.default_rng(0))
    assert rounds.contexts.shape == (20_000, 3)
    assert rounds.contexts.std(axis=0) == pytest.approx(1, abs=0.03)
    np.testing.assert_allclose(rounds.table.mean(axis=0), (0.2, 0.7), atol=0.015)  # four standard errors
    np.testing.assert_array_equal(rounds.expected_table, np.tile((0.2, 0.7), (20_000, 1)))
    high = rounds.contexts[:, 0] > 0
    assert rounds.table[high].mean() == pytest.approx(rounds.table[~high].mean(), abs=0.02)
    assert (Arms().sample(5, np.random.default_rng(0)).contexts == 1).all()


def test_the_oldest_items_leave_a_page() -> None:
    visits = Page(live=5, every=4, leaving=2).sample(13, np.random.default_rng(1))
    assert len(visits.items) == len(visits.born) == 5 + 3 * 2
    np.testing.assert_array_equal(visits.born, [0, 0, 0, 0, 0, 4, 4, 8, 8, 12, 12])
    for t, shown in enumerate(visits.shown):
        assert len(set(shown)) == 5
        assert visits.born[shown].max() <= t
    for t in (4, 8, 12):
        before, after = set(visits.shown[t - 1].tolist()), set(visits.shown[t].tolist())
        assert len(before - after) == 2
        assert (visits.born[list(before - after)] <= visits.born[list(before & after)].min()).all()
        assert (visits.shown[t] == visits.shown[min(t + 3, 12)]).all()


def test_chances_are_those_of_the_logistic_model() -> None:
    page = Page(live=3, every=10, features=2, level=-1.0, quality=0.4, taste=0.8)
    visits = page.sample(25, np.random.default_rng(2))
    generator = np.random.default_rng(2)
    taste, items = generator.normal(size=(2, 2)) * 0.8 / np.sqrt(2), generator.normal(size=(5, 2))
    level = -1.0 + 0.4 * generator.normal(size=5)
    np.testing.assert_array_equal(visits.items, items)
    for t in (0, 12, 24):
        for place, item in enumerate(visits.shown[t]):
            odds = level[item] + visits.users[t] @ taste @ items[item]
            assert visits.chances[t, place] == pytest.approx(1 / (1 + np.exp(-odds)))


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidInput, match=r"rates: found \(0.5, 1.5\)"):
        Arms((0.5, 1.5))
    with pytest.raises(InvalidInput, match="noise: found -1"):
        Arms(noise=-1)
    with pytest.raises(InvalidInput, match="leaving: found 13"):
        Page(leaving=13)
    with pytest.raises(InvalidInput, match="live"):
        Page(live=1)
