from __future__ import annotations

import json
from typing import Any

import pytest

from o2pl import Bandit
from o2pl.engine.member import QUADRATIC
from o2pl.simulation.description import built
from o2pl.storage import decode_from_storage
from o2pl_reproduction.studies import structures_learners
from o2pl_reproduction.studies.structures_learners import (
    ENTRANTS,
    FROZEN,
    OF_THE_BAKEOFF,
    SLOW,
    TRIED,
    UNDER_CHANGE,
    bakeoff_learners,
    bandits,
    candidate_learners,
    structure_learners,
    wheel_learners,
)

UNTUNED = {"bandit", "o2pl", "uniform"}


def names(found: Any) -> list[str]:
    return [each.description["name"] for each in found]


def test_every_rival_is_tuned_over_as_many_settings_and_frozen() -> None:
    tried = {name: len(entrant.candidates) for name, entrant in ENTRANTS.items()}
    assert {name for name, count in tried.items() if not count} == UNTUNED
    assert set(tried.values()) == {0, TRIED, TRIED + 1}
    frozen = json.loads(FROZEN.read_text())
    assert set(frozen) == set(ENTRANTS) - UNTUNED
    for name, entry in frozen.items():
        assert entry["settings"] in [dict(each) for each in ENTRANTS[name].candidates]
        assert entry["share"] == max(each["share"] for each in entry["candidates"])
        assert entry["seeds"] == [5000]
    assert set(SLOW) <= set(ENTRANTS)


def test_frozen_settings_are_those_that_play() -> None:
    frozen = json.loads(FROZEN.read_text())
    for each in structure_learners():
        learner: Any = built(each.description, n_actions=4, reward_range=(0.0, 1.0), random_state=0)
        params = learner.get_params()
        for name, value in frozen.get(each.description["name"], {"settings": {}})["settings"].items():
            assert params[name] == decode_from_storage(value)
        assert params["n_actions"] == 4


def test_bandit_plays_as_it_comes() -> None:
    (bandit,) = [each for each in structure_learners() if each.description["name"] == "bandit"]
    made: Any = built(bandit.description, n_actions=3, reward_range=(0.0, 2.0), random_state=1)
    assert repr(made) == repr(Bandit(3, reward_range=(0.0, 2.0), random_state=1))


def test_the_learner_without_changes_takes_part_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures_learners, "WITHOUT_CHANGES", {})
    assert names(bandits()) == ["bandit"]
    monkeypatch.setattr(structures_learners, "WITHOUT_CHANGES", {"exploration": 0.07})
    fixed = bandits()[1]
    assert fixed.description["name"] == "bandit-fixed"
    assert fixed.description["params"]["exploration"] == 0.07


def test_who_plays_elsewhere() -> None:
    assert set(names(bakeoff_learners(OF_THE_BAKEOFF))) == set(OF_THE_BAKEOFF)
    assert set(UNDER_CHANGE) <= set(OF_THE_BAKEOFF)
    wheel = {each.description["name"]: each.description for each in wheel_learners()}
    linucb: Any = built(wheel["linucb-quadratic"], n_actions=5, reward_range=(0.0, 50.0), random_state=0)
    assert linucb.features == QUADRATIC  # inputs and products, which Bandit's rich members have too
    assert len(names(candidate_learners())) == len(set(names(candidate_learners())))
