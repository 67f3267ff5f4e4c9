"""The fused replay at its doors; its numbers are compared in `test_kernel_contracts.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import o2pl
from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.features import Chain, Fourier, Standardise
from o2pl.features.plan import feature_plan
from o2pl.kernels.replay import replay_adam
from o2pl.objectives import Pessimistic
from o2pl.oracles import Adam
from o2pl.policies import ActionWise, Softmax, UniformMixture


def test_it_is_for_a_linear_softmax_on_planned_features_and_changes_nothing_it_is_given() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    oracle, objective = Adam(3, 0.1), Pessimistic(0.1)

    def stepped(policy: Any, features: Any, contexts: Any) -> Any:
        flat = contexts.values if isinstance(contexts, ActionSets) else contexts
        seen = features.observe(features.init(3), flat)
        n = len(contexts)
        rows = Interactions(contexts, np.arange(n) % 2, np.arange(n) % 2, np.full(n, 0.5), (0, 1))
        params = policy.init(features.width(3, seen))
        kept = oracle.init(len(params))
        plan = None if isinstance(contexts, ActionSets) else feature_plan(features, seen, 3)
        moved = replay_adam(policy, objective, plan, oracle, rows, params, kept)
        assert not params.any()
        assert not any(array.any() for array in kept.values())
        return moved

    found = stepped(Softmax(2), Standardise(), X)
    assert found[0].any()
    assert found[1]["steps"].tolist() == [3]
    assert stepped(UniformMixture(Softmax(2)), Standardise(), X) is None
    assert stepped(Softmax(2), Chain((Fourier(4),)), X) is None
    assert stepped(ActionWise(), Standardise(), ActionSets(X, np.arange(0, 21, 2))) is None


def test_a_replay_learner_is_not_lost_when_its_log_grows_or_is_read_back(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    x, rewards = generator.normal(size=(700, 3)).astype(np.float32), generator.random((700, 2))
    whole, parts = (o2pl.O2PL(2, policy="linear", schedule="replay", random_state=3) for _ in range(2))
    expected = whole.run((x, rewards))
    for t in range(len(x)):
        if t in (15, 16, 17, 130, 333):
            parts.save(tmp_path / "learner")
            parts = o2pl.load(tmp_path / "learner")
        action, propensity = parts.act(x[t])
        assert (action, propensity) == (expected.actions[t], expected.propensities[t])
        parts.update(x[t], action, rewards[t, action], propensity)
    np.testing.assert_array_equal(parts.log_.contexts, x)
    np.testing.assert_array_equal(parts.predict_proba(x), whole.predict_proba(x))
