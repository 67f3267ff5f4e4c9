"""Readers whose best policy is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from o2pl.errors import InvalidInput
from o2pl.serving.simulate import AGES, DEVICES, PARTS, News, Service, visits


def test_clicks_come_with_the_probability_that_a_visit_says() -> None:
    """Each of the visit's articles against the formula, written out; and the editor's choice is first."""
    world, generator = News(), np.random.default_rng(0)
    taste, ease, mood, quality, topics, lengths = world._effects
    for _ in range(50):
        visit = world.visit(generator)
        age = AGES.index(visit.reader["reader"]["age"])
        device = DEVICES.index(visit.reader["reader"]["device"])
        part = PARTS.index(visit.reader["time"]["part"])
        numbers = [int(article["id"].removeprefix("article-")) for article in visit.articles]
        for k, p in zip(numbers, visit.clicks, strict=True):
            score = -1.2 + taste[age, topics[k]] + ease[device, lengths[k]] + mood[part, topics[k]] + quality[k]
            assert p == pytest.approx(1 / (1 + np.exp(-score)))
        liked = [_liked(world, k) for k in numbers]
        assert liked == sorted(liked, reverse=True)


def _liked(world: News, article: int) -> float:
    cases = itertools.product(range(len(AGES)), range(len(DEVICES)), range(len(PARTS)))
    return float(np.mean([world.probabilities(*case, np.array([article]))[0] for case in cases]))


def test_there_is_something_to_learn() -> None:
    """The best article is well above the editor's choice, and that above a random one."""
    world, generator = News(), np.random.default_rng(1)
    clicks = np.array([world.visit(generator).clicks for _ in range(2000)])
    best, editor, uniform = clicks.max(axis=1).mean(), clicks[:, 0].mean(), clicks.mean()
    assert best > editor + 0.1
    assert editor > uniform + 0.05


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(InvalidInput, match="expected one such as http"):
        Service("127.0.0.1:8000", "key")
    with pytest.raises(InvalidInput, match="start one with `o2pl serve`"):
        list(visits("http://127.0.0.1:9", "key", 3))
