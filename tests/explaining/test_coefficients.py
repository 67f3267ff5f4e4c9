from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import o2pl
from o2pl.features import Chain, Fourier


def fitted(policy: Any, names: bool = False) -> tuple[Any, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(500, 3)) * [1, 10, 0.1] + [0, 50, 3]
    actions = generator.integers(3, size=500)
    rewards = (actions == np.argmax(x - x.mean(axis=0), axis=1)).astype(float)
    contexts = pd.DataFrame(x, columns=["age", "income", "rate"]) if names else x
    called = np.array(["a", "b", "c"])[actions] if names else actions
    return o2pl.O2PL(3, policy=policy, random_state=0).fit(contexts, called, rewards, np.full(500, 1 / 3)), x


def by_term(row: np.ndarray, names: list[str]) -> dict[str, float]:
    values = {"intercept": 1.0} | dict(zip(names, row.tolist(), strict=True))
    for i, one in enumerate(names):
        values[f"{one}²"] = row[i] ** 2
        values |= {f"{one} × {other}": row[i] * row[j] for j, other in enumerate(names) if j > i}
    return values


@pytest.mark.parametrize("policy", ["linear", "quadratic", "union"])
def test_they_make_the_scores_again(policy: str) -> None:
    """Softmax of Σ coefficient × term, of the inputs as they come, is the policy."""
    learner, x = fitted(policy)
    table = learner.coefficients()
    row = x[np.abs(x - x.mean(axis=0)).max(axis=1).argmin()]
    terms = by_term(row.astype(np.float32), ["x0", "x1", "x2"])
    scores = learner.snapshot().scores(row[None].astype(np.float32)).reshape(len(table.members), 3)
    for member, own in zip(table.members, scores, strict=True):
        again = np.array([terms[term] for term in member.terms]) @ member.values
        np.testing.assert_allclose(again, own, rtol=1e-3, atol=1e-3)
    assert len(list(table)) == len(table)
    assert sum(member.weight for member in table.members) == pytest.approx(1)


def test_as_a_frame_with_names(tmp_path: Path) -> None:
    learner, _ = fitted("quadratic", names=True)
    frame = learner.coefficients().to_frame()
    assert list(frame.columns) == ["member", "weight", "action", "term", "coefficient"]
    assert set(frame["action"]) == {"a", "b", "c"}
    assert {"intercept", "age", "age²", "age × income"} <= set(frame["term"])
    learner.snapshot().save(tmp_path / "policy.o2pl")
    published = o2pl.load(tmp_path / "policy.o2pl").coefficients().to_frame()
    pd.testing.assert_frame_equal(published.drop(columns="member"), frame.drop(columns="member"))
    assert "age × income" in str(learner.coefficients())
    assert "income" in learner.coefficients()._repr_html_()


def test_hashed_words(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    contexts = [{"city": ["Rome", "Oslo"][k % 2], "age": float(20 + k % 30)} for k in range(300)]
    actions = generator.integers(2, size=300)
    rewards = (actions == [k % 2 for k in range(300)]).astype(float)
    learner = o2pl.O2PL(2, policy="hashed", random_state=0).fit(contexts, actions, rewards, np.full(300, 0.5))
    (member,) = learner.coefficients().members
    values = dict(zip(member.terms, member.values, strict=True))
    assert list(values) == ["intercept", "city=Rome", "age", "age is there", "city=Oslo"]
    scores = learner.snapshot().scores(learner._engine.encoder.encode_one(contexts[4]))[0]
    again = values["intercept"] + values["city=Rome"] + values["age is there"] + 24 * values["age"]
    np.testing.assert_allclose(again, scores, rtol=1e-4, atol=1e-5)
    learner.save(tmp_path / "model.o2pl")
    loaded = o2pl.load(tmp_path / "model.o2pl")
    assert loaded.coefficients().members[0].terms[1].startswith("feature ")
    assert loaded.coefficients(contexts[:2]).members[0].terms == member.terms


def test_items_share_their_weights() -> None:
    generator = np.random.default_rng(0)
    learner = o2pl.Bandit(random_state=0)
    for _ in range(60):
        user, items = generator.normal(size=2), generator.normal(size=(4, 3))
        decision = learner.act(user, items)
        learner.update(decision, float(items[decision.action, 0] * user[1] > 0))
    table = learner.coefficients()
    assert table.actions == ("all",)
    assert "user x1 × item x0" in table.members[0].terms
    row = dict(zip(table.members[0].terms, table.members[0].values[:, 0], strict=True))
    scores = learner.snapshot().scores(learner._engine.encoder.encode_one((user, items)))[0]
    names = ["user x0", "user x1", "item x0", "item x1", "item x2"]
    again = [
        sum(row.get(term, 0.0) * value for term, value in by_term(np.concatenate([user, item]), names).items())
        for item in items
    ]
    np.testing.assert_allclose(again, scores, rtol=1e-3, atol=1e-3)


def test_of_a_gaussian_policy_they_make_the_mean_action() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(400, 2))
    actions = 5 + x[:, 0] + 0.5 * generator.normal(size=400)
    learner = o2pl.GaussianO2PL(centre=5.0, random_state=0)
    learner.fit(x, actions, np.exp(-((actions - 6 - x[:, 0]) ** 2)), np.full(400, 0.5))
    (member,) = learner.coefficients().members
    row = np.array([0.3, -0.2], np.float32)
    mean = member.values[:, 0] @ [1, *row]
    assert mean == pytest.approx(learner.predict([row])[0], rel=1e-4)


def test_what_has_none_is_refused() -> None:
    learner, _ = fitted(o2pl.Member(Chain((Fourier(5),))))
    with pytest.raises(o2pl.InvalidInput, match="not sums over inputs"):
        learner.coefficients()
