"""A finite class that is searched after every round: a run in one compiled loop is the loop of one call per round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.engine import simulation
from o2pl.policies import FiniteClass, ThresholdClass

T = 250
THRESHOLDS = ThresholdClass(tuple(np.linspace(-1, 1, 9)), 0.12)
TABLE = FiniteClass(np.random.default_rng(0).dirichlet(np.ones(2), size=(5, 2)))


def world(policy: Any) -> tuple[Any, Any]:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(T, 1)).astype(np.float32)
    if policy is TABLE:
        x = (x > 0).astype(np.float32)
    chances = np.stack([np.full(T, 0.5), 1 / (1 + np.exp(-2 * x[:, 0]))], axis=1)
    return x, 4 * (generator.random((T, 2)) < chances) - 1.0


@pytest.mark.parametrize("policy", [THRESHOLDS, TABLE], ids=["thresholds", "table"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sharpness": 3.0, "exploration": 0.1},
        {"schedule": o2pl.Exact(warm_start=30)},
        {"baseline": "mean", "clip": 2.0},
    ],
    ids=["letter", "sharp", "warm start", "centred"],
)
def test_a_run_is_the_loop(policy: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, rewards = world(policy)
    ran, looped, plain = (
        o2pl.O2PL.paper(policy=policy, reward_range=(-1, 3), random_state=1, **settings) for _ in range(3)
    )
    runs = [ran.run((x[:100], rewards[:100])), ran.run((x[100:], rewards[100:]))]
    found = [pair for run in runs for pair in zip(run.actions.tolist(), run.propensities.tolist(), strict=True)]
    decisions = []
    for t in range(T):
        action, propensity = looped.act(x[t])
        looped.update(x[t], action, rewards[t, action], propensity)
        decisions.append((action, propensity))
    assert found == decisions
    assert ran.act(x[0]) == looped.act(x[0])
    monkeypatch.setattr(simulation, "simulate_finite", lambda *_: False)  # the engine's own loop
    plain.run((x, rewards))
    (header, arrays), (its_header, its_arrays) = ran._engine.state(), plain._engine.state()
    assert header["checkpoints"] == its_header["checkpoints"]
    for name in its_arrays.keys() - {"log.ids"}:  # every decision has an id of its own
        np.testing.assert_array_equal(arrays[name], its_arrays[name])


def test_other_parts_take_the_engines_loop() -> None:
    x, rewards = world(THRESHOLDS)
    for settings in ({"schedule": "geometric"}, {"control": 5.0}):
        learner = o2pl.O2PL.paper(policy=THRESHOLDS, reward_range=(-1, 3), random_state=1, **settings)
        learner.run((x[:40], rewards[:40]))
        assert learner.effort_[0] > 0
