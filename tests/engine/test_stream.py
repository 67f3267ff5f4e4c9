from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.engine.stream import AHEAD, UniformStream


def test_next_and_take_walk_along_one_sequence() -> None:
    ones, many = UniformStream(3), UniformStream(3)
    first = [ones.next() for _ in range(3000)]
    np.testing.assert_array_equal(first, np.concatenate([many.take(n) for n in (1, 0, 1022, 1, 1000, 976)]))
    assert ones.next() == many.take(1)[0]


def test_a_restored_stream_goes_on() -> None:
    for steps in (0, 1, 1023, 1024, 1025):
        stream = UniformStream(4)
        stream.take(steps)
        other = UniformStream.restore(stream.state())
        np.testing.assert_array_equal(stream.take(2000), other.take(2000))


def test_a_place_in_the_sequence_has_one_state() -> None:
    """A number that was given back leaves no trace, wherever the stream stood."""
    for steps in (0, 1, 1023, 1024, 1025, 2048):
        stream = UniformStream(4)
        stream.take(steps)
        before = stream.state()
        stream.give_back(stream.next())
        assert stream.state() == before
    json.dumps(before)


def test_threads_never_get_the_same_number() -> None:
    stream, found, interval = UniformStream(5), list[list[float]](), sys.getswitchinterval()

    def draw(many: bool) -> None:
        mine: list[float] = []
        while len(mine) < 6000:
            mine += stream.take(AHEAD + 100).tolist() if many else [stream.next() for _ in range(50)]
        found.append(mine)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=draw, args=(number < 2,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    drawn = [number for each in found for number in each]
    assert len(set(drawn)) == len(drawn)


def test_a_learner_does_not_draw_with_the_numbers_its_world_was_made_of() -> None:
    """A world and a learner with the same seed: the commonest way to seed an experiment."""
    own = UniformStream(0).take(2000)
    assert abs(np.corrcoef(own, np.random.default_rng(0).random(2000))[0, 1]) < 0.1
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(UniformStream(generator).take(5), np.random.default_rng(0).random(5))


def test_copies_draw_numbers_of_their_own_by_their_number(tmp_path: Path) -> None:
    learner = o2pl.Bandit(5, random_state=0)
    for _ in range(3):
        learner.act(np.zeros(2))
    learner.save(tmp_path / "common")

    def decisions(**given: int) -> list[Any]:
        copy = o2pl.load(tmp_path / "common", **given)
        return [copy.act(np.zeros(2)).action for _ in range(40)]

    assert decisions() == decisions() == [learner.act(np.zeros(2)).action for _ in range(40)]
    assert decisions(worker=1) == decisions(worker=1)
    assert len({tuple(decisions(worker=k)) for k in range(6)} | {tuple(decisions())}) == 7
    with pytest.raises(o2pl.InvalidInput, match="worker"):
        o2pl.load(tmp_path / "common", worker=-1)
    learner.snapshot().save(tmp_path / "policy")
    with pytest.raises(o2pl.InvalidInput, match="worker: found a number for a Decider"):
        o2pl.load(tmp_path / "policy", worker=1)
