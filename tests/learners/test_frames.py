"""Learners on frames and rows of them, end to end: all methods, files, and what a later frame may not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import o2pl
from o2pl import InvalidInput

N = 300


def world(seed: int = 0) -> tuple[dict[str, Any], Any, Any, Any]:
    """The city says which action is right; a third of the ages are missing."""
    rng = np.random.default_rng(seed)
    columns = {
        "age": [None if k % 3 == 0 else float(age) for k, age in enumerate(rng.normal(40, 9, N))],
        "city": rng.choice(["Rome", "Oslo", "Bern"], N).tolist(),
        "member": (rng.random(N) < 0.5).tolist(),
    }
    actions = rng.integers(3, size=N)
    right = np.array([["Rome", "Oslo", "Bern"].index(city) for city in columns["city"]])
    return columns, actions, (actions == right).astype(float), np.full(N, 1 / 3)


def rows_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


MAKES: dict[str, Any] = {
    "arrow": pa.table,
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
}


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("policy", ["linear", "hashed"])
def test_frames_rows_and_files(make: str, policy: str, tmp_path: Any) -> None:
    columns, actions, rewards, propensities = world()
    frame, rows = MAKES[make](columns), rows_of(columns)
    learner = o2pl.Bandit(3, policy=policy, random_state=0).fit(frame, actions, rewards, propensities)
    assert learner.feature_names_in_ == ("age", "city", "member")
    assert learner.score(frame, actions, rewards, propensities) > 0.95
    np.testing.assert_array_equal(learner.predict_proba(rows), learner.predict_proba(frame))
    turned = MAKES[make](dict(reversed(columns.items())))
    np.testing.assert_array_equal(learner.predict(turned), learner.predict(frame))
    learner.partial_fit(frame, actions, rewards, propensities)
    decision = learner.act(rows[0])
    learner.update(rows[0], decision.action, 1.0, decision.propensity)
    learner.save(tmp_path / "model.o2pl")
    learner.snapshot().save(tmp_path / "policy.o2pl")
    again, served = o2pl.load(tmp_path / "model.o2pl"), o2pl.load(tmp_path / "policy.o2pl")
    np.testing.assert_array_equal(again.predict_proba(frame), learner.predict_proba(frame))
    assert again.act(rows[1]) == learner.act(rows[1])
    assert served.act(rows[1]).propensity > 0
    for changed, said in (
        (columns | {"city": [1.0] * N}, "column 'city': found numbers, expected strings"),
        (columns | {"more": [1.0] * N}, "column 'more': found, expected only"),
        ({"age": columns["age"], "city": columns["city"]}, "column 'member': found none"),
    ):
        for reads in (again.predict, served.encoder.encode):
            with pytest.raises(InvalidInput, match=said):
                reads(MAKES[make](changed))
    with pytest.raises(InvalidInput, match="column 'town': found, expected only"):
        again.act({"age": 3, "town": "Rome"})
    with pytest.raises(InvalidInput, match="column 'age': found strings"):
        again.update({"age": "old"}, 0, 1.0, 0.5)


def test_a_pandas_series_is_a_row() -> None:
    pd = pytest.importorskip("pandas")
    columns, actions, rewards, propensities = world()
    frame = pd.DataFrame(columns)
    learner = o2pl.Bandit(3, policy="linear", random_state=0).fit(frame, actions, rewards, propensities)
    decision = learner.act(frame.iloc[0])
    learner.update(frame.iloc[0], decision.action, 1.0, decision.propensity)
    np.testing.assert_array_equal(learner.log_.contexts[-1], learner.log_.contexts[0])


@pytest.mark.parametrize("policy", ["linear", "union"])
def test_rows_with_names_from_the_first_round_on(policy: str) -> None:
    rng, learner = np.random.default_rng(1), o2pl.Bandit(3, policy=policy, random_state=0)
    cities = ["Rome", "Oslo", "Bern"]
    rewards = []
    for _ in range(400):
        row = {"age": float(rng.normal()), "city": cities[rng.integers(3)]}
        decision = learner.act(row)
        rewards.append(float(row["city"] == cities[decision.action]))
        learner.update(row, decision.action, rewards[-1], decision.propensity)
    assert np.mean(rewards[-100:]) > 0.9


def test_real_numbers_to_set_from_frames() -> None:
    rng = np.random.default_rng(0)
    frame = pa.table({"city": rng.choice(["Rome", "Oslo"], 200).tolist()})
    pricing = o2pl.GaussianO2PL(centre=5.0, random_state=0)
    actions = rng.normal(5, 1, 200)
    pricing.partial_fit(frame, actions, np.exp(-((actions - 6) ** 2)), np.exp(-((actions - 5) ** 2) / 2) / 2.5066)
    assert pricing.predict([{"city": "Rome"}])[0] > 5.2


def test_a_refused_first_frame_leaves_no_trace() -> None:
    columns, actions, rewards, propensities = world()
    learner = o2pl.Bandit(3, policy="linear", reward_range=(0, 1), random_state=0)
    with pytest.raises(InvalidInput, match="reward, row 0"):
        learner.partial_fit(pa.table(columns), actions, rewards + 5, propensities)
    learner.partial_fit(np.ones((2, 2)), [0, 1], [0.0, 1.0], [0.5, 0.5])  # any kind may still come first
    with pytest.raises(InvalidInput, match="expected rows of 2 numbers, as in the learner's first data"):
        learner.predict(pa.table(columns))
    assert learner.predict(pa.table({"a": [1.0], "b": [2.0]})).shape == (1,)  # numbers without gaps pass, by place


def test_improving_on_an_incumbent_from_frames_and_dictionaries() -> None:
    columns, actions, rewards, propensities = world()
    for contexts in (pa.table(columns), rows_of(columns)):
        better = o2pl.O2PL.from_incumbent(contexts, actions, rewards, propensities, random_state=0)
        assert better.improvement_.deploy
        assert better.act({"age": 40.0, "city": "Oslo", "member": True}).action == 1
        found = o2pl.SafeImprovement(random_state=0).fit(contexts, actions, rewards, propensities)
        assert found.predict(contexts).tolist() == better.predict(contexts).tolist()


@pytest.mark.parametrize("learner", [o2pl.Bandit, o2pl.O2PL])
def test_users_and_items_learn_their_products(learner: Any) -> None:
    """What a user likes is in no feature alone; the number of items differs from round to round."""
    rng, ranker = np.random.default_rng(2), learner(policy="hashed actionwise", random_state=0)
    rewards = []
    for _ in range(600):
        user = ["u", "v"][rng.integers(2)]
        items = [{"kind": ["x", "y", "z"][rng.integers(3)]} for _ in range(rng.integers(2, 6))]
        liked = {"u": "x", "v": "y"}[user]
        context = {"shared": {"user": user}, "actions": items}
        decision = ranker.act(context)
        best = any(item["kind"] == liked for item in items)
        ranker.update(context, decision.action, float(items[decision.action]["kind"] == liked), decision.propensity)
        if best:
            rewards.append(items[decision.action]["kind"] == liked)
    assert np.mean(rewards[-150:]) > 0.9
    both = [({"user": name}, [{"kind": "x"}, {"kind": "y"}]) for name in "uv"]
    assert ranker.predict(both).tolist() == [0, 1]


@pytest.mark.parametrize("begin", [None, [1.0, 2.0], {"a": 1.0}, {"a": "x"}])
def test_a_frame_is_not_one_context(begin: Any) -> None:
    frame = pa.table({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})
    learner = o2pl.Bandit(2, random_state=0)
    if begin is not None:
        learner.act(begin)
    with pytest.raises(InvalidInput, match=r"^context: found a data frame of 3 rows, .* `frame\.iloc\[0\]`"):
        learner.act(frame)
    assert begin is None or learner.act(begin).action in (0, 1)
