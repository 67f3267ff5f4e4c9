"""Readers whose best policy is known."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from tests.serving.clients import inside, server
from typer.testing import CliRunner

from o2pl.cli import app
from o2pl.errors import InvalidInput
from o2pl.serving.simulate import AGES, DEVICES, PARTS, News, Played, ServiceClient, visits


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


def test_regret_falls_and_the_page_shows_it(tmp_path: Path) -> None:
    """A real service with its trainer. Readers come in waves until it has learned: by then regret has halved.

    The page's numbers are those of the readers: what they earned, and intervals with what articles were worth to them.
    """
    with server(tmp_path, "--rate-limit", "0") as real:
        first = list(visits(real.address, real.write_key, 150, seed=1))
        before, waves, after = regret(first), [], 1.0
        until = time.monotonic() + 240
        while after > before / 2:
            assert time.monotonic() < until, (before, after)
            waves.append(list(visits(real.address, real.write_key, 150, seed=2 + len(waves))))
            after = regret(waves[-1])
        told = CliRunner().invoke(
            app, ["simulate", real.address, "--key", real.write_key, "--calls", "40", "--rate", "0"]
        )
        assert told.exit_code == 0, told.output
        assert "regret per call" in told.output.splitlines()[-1]
        played = [one for wave in [first, *waves] for one in wave]
        with real.client(real.read_key) as client:
            while (found := client.get("/page/summary/hour").json())["total"]["rows"] < len(played) + 40:
                assert time.monotonic() < until, found["total"]
                time.sleep(0.5)
        assert found["state"]["trainer"]
        assert found["models"]["served"] > 0
        mean = np.mean([one.earned for one in played])
        assert found["total"]["reward"][0] == pytest.approx(mean, abs=41 / len(played))  # of 40 it is not known here
        low, high = found["total"]["reward"][1:]
        assert low < np.mean([one.chosen for one in played]) < high
        gain, truth = found["total"]["gains"]["uniform"], np.mean([one.chosen - one.uniform for one in played])
        unknown = 40 / len(played)  # what those 40 may change
        assert gain["low"] - unknown < truth < gain["high"] + unknown
        assert gain["low"] <= gain["value"] <= gain["high"]


def regret(played: list[Played]) -> float:
    return float(np.mean([one.best - one.chosen for one in played]))


def test_a_key_that_may_not_write_is_refused(tmp_path: Path) -> None:
    with inside(tmp_path) as shop, pytest.raises(InvalidInput, match="key: the service refused it"):
        list(visits(str(shop.client.base_url), shop.made.read_key, 3))


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(InvalidInput, match="expected one such as http"):
        ServiceClient("127.0.0.1:8000", "key")
    with pytest.raises(InvalidInput, match="start one with `o2pl serve`"):
        list(visits("http://127.0.0.1:9", "key", 3))
