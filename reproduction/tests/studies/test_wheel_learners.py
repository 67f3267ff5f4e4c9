"""The wheel's learners: their features, that all methods share them, and arms that differ in pessimism alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from o2pl.errors import InvalidInput
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl_reproduction.studies.wheel import PAPER_WHEEL, WHEEL
from o2pl_reproduction.studies.wheel_learners import ARMS, FEATURES, HEAD_STARTS, TUNED, Radial


def params_by_learner() -> dict[str, dict[str, Any]]:
    return {
        cell.learner["name"]: cell.learner["params"] for cell in WHEEL.cells(None) if cell.world["name"] == PAPER_WHEEL
    }


def test_radial_features_are_those_of_the_definition() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 2)).astype(np.float32)
    slow = [[x, y, x * y, math.sqrt(x * x + y * y), x * x + y * y] for x, y in rows.tolist()]
    features = Radial().transform(Radial().init(2), rows)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, slow, rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidInput, match="found 3 inputs, expected 2"):
        Radial().width(3)


def test_all_methods_of_a_group_see_the_same_features() -> None:
    params = params_by_learner()
    assert list(TUNED) == list(FEATURES)
    for features in TUNED:
        suffix = "" if features == "linear" else f"-{features}"
        own = params[f"o2pl{suffix}"]["policy"]["fields"]["features"]
        assert own == params[f"linucb{suffix}"]["features"] == params[f"lints{suffix}"]["features"]
        assert own == encode_for_storage(FEATURES[features])
        assert params[f"o2pl{suffix}"]["baseline"] == -TUNED[features]["o2pl"][0]
        assert (params[f"lints{suffix}"]["scale"], params[f"lints{suffix}"]["ridge"]) == TUNED[features]["lints"]


def test_rivals_with_a_head_start_differ_from_those_without_in_nothing_else() -> None:
    params = params_by_learner()
    for features, methods in HEAD_STARTS.items():
        suffix = "" if features == "linear" else f"-{features}"
        for method, (level, warm_start, width) in methods.items():
            own, other = params[f"{method}{suffix}-head-start"], params[f"{method}{suffix}"]
            assert (own["features"], own["ridge"], own["method"]) == (other["features"], other["ridge"], method)
            assert (own["level"], own["warm_start"], own["width"]) == (level, warm_start, width)


def test_arms_are_their_learner_but_for_penalty_and_clip() -> None:
    params = {
        name: {key: decode_from_storage(value) for key, value in each.items()}
        for name, each in params_by_learner().items()
    }
    for learner, arms in ARMS.items():
        own = params[learner]
        assert (own["penalty"], own["clip"]) == (arms.penalty, arms.clip)
        for name, given in arms.settings().items():
            assert params[name] == own | dict(given)
