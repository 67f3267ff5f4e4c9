"""Settings are JSON under Personalizer's names; what does not hold together is refused by name."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from o2pl.errors import InvalidInput
from o2pl.serving.settings import Aggregation, Kind, Settings, changed, from_json, to_json


def test_json_both_ways() -> None:
    settings = Settings(reward_wait_time=timedelta(minutes=3), reward_aggregation=Aggregation.SUM)
    text = json.loads(to_json(settings))
    assert text["rewardAggregation"] == "sum"
    assert from_json(json.dumps({"rewardWaitTime": "PT3M", "rewardAggregation": "sum"})) == settings
    assert from_json(to_json(settings)) == settings


def test_some_are_changed() -> None:
    new = changed(Settings(), {"explorationPercentage": 0.2}, Kind.RANKED)
    assert new == Settings(exploration_percentage=0.2)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rewardWaittime": "PT3M"}, "expected 'rewardWaitTime'"),
        ({"rewardWaitTime": "3 minutes"}, "field `rewardWaitTime"),
        ({"rewardWaitTime": "-PT3M"}, "rewardWaitTime: found a negative"),
        ({"rewardAggregation": "mean"}, "field `rewardAggregation"),
        ({"defaultReward": 2}, "defaultReward: found 2.0, expected a number from 0.0 to 1.0"),
        ({"rewardRange": [1, 0]}, "rewardRange: found"),
        ({"explorationPercentage": 20}, "explorationPercentage: found 20.0"),
        ({"modelExportFrequency": "PT0S"}, "modelExportFrequency: found"),
        ({"logRetentionDays": -2}, "logRetentionDays: found -2"),
        ({"hashBits": 40}, "hashBits: found 40"),
        ({"actions": ["a", "b"]}, "expected only for kind 'fixed'"),
        ({"bounds": [0, 1]}, "expected only for kind 'continuous'"),
    ],
)
def test_what_does_not_hold_together_is_named(values: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match="(?s)" + said.replace("[", r"\[").replace("`", "`")):
        from_json(json.dumps(values))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.FIXED, {}),
        (Kind.FIXED, {"actions": ["a"]}),
        (Kind.FIXED, {"actions": ["a", "a"]}),
        (Kind.CONTINUOUS, {}),
        (Kind.CONTINUOUS, {"bounds": [3, 3]}),
    ],
)
def test_kinds_need_their_actions(kind: Kind, values: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        from_json(json.dumps(values), kind)


@pytest.mark.parametrize("text", ["", "[1]", "{", b"\xff"])
def test_what_is_no_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidInput, match="settings"):
        from_json(text)
