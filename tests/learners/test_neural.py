"""Learners of neural policies: what they learn, exact propensities, files, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Geometric, Member
from o2pl.features import Standardise
from o2pl.objectives import Outcome
from o2pl.oracles import Minibatch
from o2pl.policies import JaxPolicy, Neural, NeuralSets, UniformMixture

QUICK = Minibatch(least=32, most=64)
SELDOM = Geometric(growth=1.5, ease=0.0)


def ring(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Contexts, and rewards of three actions: which is best depends on the angle, four times around."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 2))
    angle = np.arctan2(X[:, 1], X[:, 0])
    means = 0.5 + 0.45 * np.stack([np.cos(4 * angle + shift) for shift in (0, 2.1, 4.2)], axis=1)
    return X, (generator.random((n, 3)) < means).astype(float)


def small(**settings: Any) -> dict[str, Any]:
    members = {
        "bandit": o2pl.Bandit(
            3,
            policy=(Member(objective=Outcome()), Member(Standardise(), Neural(hidden=(8,)), objective=Outcome(),
                                                        oracle=QUICK, schedule=SELDOM)),
            random_state=0, **settings,
        ),
        "o2pl": o2pl.O2PL(3, policy=Member(Standardise(), Neural(hidden=(8,)), oracle=QUICK, schedule=SELDOM),
                          random_state=0, **settings),
        "mixed with the uniform policy": o2pl.O2PL(
            3, policy=Member(Standardise(), UniformMixture(Neural(hidden=(6,))), oracle=QUICK, schedule=SELDOM),
            random_state=0, **settings,
        ),
    }  # fmt: skip
    return members


@pytest.mark.jax
def test_a_network_learns_what_quadratic_members_cannot() -> None:
    X, R = ring(2500)
    uniform = np.full(len(X), 1 / 3)
    actions = np.random.default_rng(1).integers(3, size=len(X))
    log = X, actions, R[np.arange(len(X)), actions], uniform
    fresh, means = ring(2000, seed=2)
    for make in (o2pl.Bandit, o2pl.O2PL):
        values = {}
        for policy in ("union", "neural"):
            learner = make(3, policy=policy, random_state=0).fit(*log)
            values[policy] = means[np.arange(len(fresh)), learner.predict(fresh)].mean()
        assert values["neural"] > values["union"] + 0.15


@pytest.mark.jax
@pytest.mark.parametrize("name", list(small()))
def test_one_call_per_round_is_a_run_and_propensities_are_exact(name: str) -> None:
    X, R = ring(120)
    run, loop = small()[name], small()[name]
    done = run.run((X, R))
    for x, rewards, action, propensity in zip(X, R, done.actions, done.propensities, strict=True):
        if loop._engine is not None:
            exact = loop.predict_proba([x])[0]
            assert propensity == exact[action]
        decision = loop.act(x)
        assert (decision.action, decision.propensity) == (action, propensity)
        loop.update(decision, rewards[decision.action])
    assert run.effort_ == loop.effort_


@pytest.mark.jax
@pytest.mark.parametrize("name", list(small()))
def test_a_file_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    X, R = ring(200)
    learner = small()[name]
    learner.run((X[:120], R[:120]))
    learner.save(tmp_path / "a.o2pl")
    again = o2pl.load(tmp_path / "a.o2pl")
    np.testing.assert_array_equal(again.predict_proba(X), learner.predict_proba(X))
    for one, other in zip(learner.run((X[120:], R[120:])).propensities, again.run((X[120:], R[120:])).propensities,
                          strict=True):  # fmt: skip
        assert one == other
    np.testing.assert_array_equal(again.predict_proba(X), learner.predict_proba(X))
    learner.snapshot().save(tmp_path / "b.o2pl")
    np.testing.assert_array_equal(o2pl.load(tmp_path / "b.o2pl").predict_proba(X), learner.predict_proba(X))


def test_names_stand_for_networks_by_the_kind_of_contexts() -> None:
    generator = np.random.default_rng(0)
    for make in (o2pl.Bandit, o2pl.O2PL):
        rows, matrices, offers = (make(policy="neural", random_state=0, **k) for k in ({"n_actions": 3}, {}, {}))
        assert rows.act([0.1, 0.2]).action in range(3)
        assert matrices.act(generator.normal(size=(4, 3))).action in range(4)
        assert offers.act(generator.normal(size=2), generator.normal(size=(5, 3))).action in range(5)
        kinds = [
            {type(m.policy).__name__ for m in learner._engine.spec.members if m.policy is not None}
            for learner in (rows, matrices, offers)
        ]
        assert "Neural" in kinds[0]
        assert all("NeuralSets" in kind for kind in kinds[1:])


@pytest.mark.jax
@pytest.mark.parametrize("towers", [0, 4])
def test_users_and_items(towers: int) -> None:
    """Users with a positive number want items far from 0, the others items near it."""
    generator = np.random.default_rng(3)
    users, items = generator.normal(size=(1500, 2)), generator.normal(size=(1500, 5, 2))
    likely = 1 / (1 + np.exp(-3 * np.sign(users[:, :1]) * (np.abs(items[:, :, 0]) - 0.7)))
    actions = generator.integers(5, size=1500)
    rewards = (generator.random(1500) < likely[np.arange(1500), actions]).astype(float)
    contexts = list(zip(users, items, strict=True))
    policy = NeuralSets((16,), towers=towers)
    member = Member(Standardise(), policy, objective=Outcome(False, 0.1), oracle=Minibatch(step_size=0.01))
    learner = o2pl.Bandit(policy=member, changes=None, random_state=0)
    learner.fit(contexts, actions, rewards, np.full(1500, 0.2))
    chosen = learner.predict(contexts)
    assert likely[np.arange(1500), chosen].mean() > likely.mean() + 0.15


@pytest.mark.jax
def test_real_valued_actions() -> None:
    generator = np.random.default_rng(4)
    x = generator.uniform(-2, 2, size=(1500, 1))
    actions = generator.normal(size=1500)
    rewards = np.exp(-2 * (actions - np.sin(3 * x[:, 0])) ** 2)
    density = np.exp(-0.5 * actions**2) / np.sqrt(2 * np.pi)
    wave = np.sin(3 * x[:, 0])
    apart = {}
    for policy in ("linear", "neural"):
        learner = o2pl.GaussianO2PL(policy=policy, scale=0.5, random_state=0).fit(x, actions, rewards, density)
        apart[policy] = np.mean((learner.predict(x) - wave) ** 2)
        assert learner.scale_ == pytest.approx(0.5)
    assert apart["neural"] < 0.5 * apart["linear"]
    bounded = o2pl.GaussianO2PL(policy="neural", bounds=(-3.0, 3.0), random_state=0)
    decision = bounded.act([0.3])
    assert -3 < decision.action < 3
    with pytest.raises(o2pl.InvalidInput, match="policy: found 'deep', expected 'linear', 'neural'"):
        o2pl.GaussianO2PL(policy="deep").act([0.3])


def written_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (folder / "my_policies.py").write_text(
        "import numpy as np\n\ndef scores(params, x):\n    return x @ params\n\n"
        "def start(n_features):\n    return np.zeros((n_features, 3))\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    import my_policies  # type: ignore[import-not-found]

    return my_policies


@pytest.mark.jax
def test_a_function_of_a_module_is_saved_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = written_module(tmp_path, monkeypatch)
    X, R = ring(80)
    policy = JaxPolicy(module.scores, module.start, 3)
    learner = o2pl.O2PL(policy=Member(Standardise(), policy, oracle=QUICK, schedule=SELDOM), random_state=0)
    learner.run((X, R))
    learner.save(tmp_path / "a.o2pl")
    again = o2pl.load(tmp_path / "a.o2pl")
    np.testing.assert_array_equal(again.predict_proba(X), learner.predict_proba(X))
    monkeypatch.delitem(sys.modules, "my_policies")
    (tmp_path / "my_policies.py").unlink()
    with pytest.raises(o2pl.InvalidInput, match="'scores' of the module 'my_policies', which cannot be imported"):
        o2pl.load(tmp_path / "a.o2pl")


@pytest.mark.jax
def test_a_function_without_a_name_is_not_saved(tmp_path: Path) -> None:
    X, R = ring(30)
    policy = JaxPolicy(lambda params, x: x @ params, lambda d: np.zeros((d, 3)), 3)
    learner = o2pl.O2PL(policy=Member(Standardise(), policy, oracle=QUICK), random_state=0)
    learner.run((X, R))
    with pytest.raises(
        o2pl.InvalidInput, match=r"cannot be saved: the function .* define it at the top level of a module"
    ):
        learner.save(tmp_path / "a.o2pl")
    assert not list(tmp_path.iterdir())


@pytest.mark.jax
def test_weights_of_rows_and_changes_are_for_networks_too() -> None:
    X, R = ring(160)
    for settings in ({"schedule": Geometric(half_life=40.0)}, {"schedule": Geometric(window=60)}):
        learner = o2pl.Bandit(
            3, policy=Member(Standardise(), Neural(hidden=(5,)), objective=Outcome(), oracle=QUICK), random_state=0,
            **settings,
        )  # fmt: skip
        assert np.isfinite(learner.run((X, R)).propensities).all()
