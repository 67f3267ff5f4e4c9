"""Tables of decisions: contexts in, decisions out, rewards joined."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import o2pl
from o2pl import InvalidInput
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.batches import decided_batch, joined_batches
from o2pl.formats.log_tables import log_of_log_table

N = 200
G = np.random.default_rng(0)
TABLE = pa.table(
    {
        "customer": [f"c{row}" for row in range(N)],
        "age": G.integers(18, 80, N),
        "city": G.choice(["Rome", "Oslo"], N).tolist(),
    }
)
BAD = BadRows("customers")


def learner() -> Any:
    made = o2pl.Bandit(actions=["mail", "none"], random_state=0)
    some = TABLE.select(["age", "city"])
    return made.fit(some, ["mail", "none"] * (N // 2), (np.arange(N) % 3 == 0) * 1.0, np.full(N, 0.5))


def test_decisions_are_those_of_the_policy_and_the_rest_stays() -> None:
    decider = learner().snapshot()
    made = decided_batch(decider, TABLE, BAD, seed=3)
    assert made.column_names == ["customer", "age", "city", "event_id", "action", "propensity"]
    assert made.equals(decided_batch(decider, TABLE, BAD, seed=3).set_column(3, "event_id", made.column("event_id")))
    pi = decider.predict_proba(TABLE.select(["age", "city"]))
    played = [decider.actions_.index(name) for name in made.column("action").to_pylist()]
    np.testing.assert_array_equal(made.column("propensity").to_numpy(), pi[np.arange(N), played])
    assert len(set(made.column("event_id").to_pylist())) == N


def test_rewards_are_joined_by_id_and_the_log_is_learned_from() -> None:
    made = decided_batch(learner().snapshot(), TABLE, BAD, seed=3)
    ids = made.column("event_id").to_pylist()
    order = G.permutation(50)
    rewards = pa.table({"event_id": [ids[row] for row in order] + ["elsewhere"], "reward": [*(order / 50.0), 1.0]})
    found = joined_batches(made, rewards, ("decisions", "rewards"), default=0.25)
    assert found[1:] == (50, 150, 1)
    np.testing.assert_allclose(found.table.column("reward").to_numpy()[:50], np.arange(50) / 50)
    assert set(found.table.column("reward").to_pylist()[50:]) == {0.25}
    log = log_of_log_table(found.table, BAD)
    assert list(log.contexts.columns) == ["age", "city"]  # the customer is noted as no feature
    assert log.event_ids == ids
    assert (
        o2pl.Bandit(actions=["mail", "none"]).fit(log).log_.rewards.sum()
        == found.table.column("reward").to_numpy().sum()
    )
    left = joined_batches(made, rewards, ("decisions", "rewards"))
    assert left[1:] == (50, 150, 1)
    assert left.table.column("event_id").to_pylist() == ids[:50]


@pytest.mark.parametrize(("several", "expected"), [("sum", 1.5), ("max", 1.0)])
def test_several_rewards_of_a_decision(several: str, expected: float) -> None:
    made = decided_batch(learner().snapshot(), TABLE, BAD)
    first = made.column("event_id")[0].as_py()
    rewards = pa.table({"id": [first, first], "paid": [1, 0.5]})
    found = joined_batches(made, rewards, ("decisions", "rewards"), "id", "paid", None, several)
    assert found.table.column("reward").to_pylist() == [expected]
    with pytest.raises(InvalidInput, match=r"^rewards, row 1: found a second reward of decision .*several='sum'"):
        joined_batches(made, rewards, ("decisions", "rewards"), "id", "paid")


def test_dictionaries_and_items() -> None:
    words = o2pl.Bandit(2, random_state=0).update({"city": "Rome", "tags": ["a"]}, 0, 1.0, 0.5)
    table = pa.table({"context": [json.dumps({"city": "Oslo", "tags": ["b"]})] * 5})
    assert set(decided_batch(words.snapshot(), table, BAD).column("action").to_pylist()) <= {0, 1}
    items = o2pl.Bandit(random_state=0)
    items.update(items.act({"user": "u"}, [{"kind": "a"}, {"kind": "b"}]), 1.0)
    table = pa.table({"user": ["u", "v"], "actions": [json.dumps([{"kind": "a"}, {"kind": "b"}, {"kind": "c"}])] * 2})
    made = decided_batch(items.snapshot(), table, BAD)
    assert made.column_names == ["user", "actions", "event_id", "action", "propensity"]
    again = joined_batches(made, made.select(["event_id", "propensity"]), ("d", "r"), "event_id", "propensity")
    assert log_of_log_table(again.table, BAD).kind == "dictionaries"


def test_what_cannot_be_decided_or_joined() -> None:
    decider = learner().snapshot()
    made = decided_batch(decider, TABLE, BAD)
    ids, names = made.column("event_id"), ("decisions", "rewards")
    with pytest.raises(InvalidInput, match="customers: found a column 'action', expected contexts only"):
        decided_batch(decider, made.drop_columns(["event_id"]), BAD)
    with pytest.raises(InvalidInput, match="expected a column 'city'"):
        decided_batch(decider, TABLE.drop_columns(["city"]), BAD)
    for decisions, rewards, said in (
        (
            TABLE,
            pa.table({"event_id": ids, "reward": np.ones(N)}),
            "decisions: found columns .* expected a column 'event_id'",
        ),
        (made, pa.table({"event_id": ids}), "rewards: found columns event_id, expected a column 'reward'"),
        (made, pa.table({"event_id": ids[:2], "reward": [1.0, None]}), "rewards, row 1: found None in 'reward'"),
        (made, pa.table({"event_id": ["x", None], "reward": [1.0, 2.0]}), "rewards, row 1: found no 'event_id'"),
        (
            pa.concat_tables([made, made]),
            pa.table({"event_id": ids, "reward": np.ones(N)}),
            "decisions, row 0: found .* again",
        ),
    ):
        with pytest.raises(InvalidInput, match=said):
            joined_batches(decisions, rewards, names)
