"""Texts of action sets are weighed as the dictionaries in them are, or refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl.engine.set_texts import SetTexts
from o2pl.features import Hashed
from o2pl.objectives.outcome import Outcome
from o2pl.policies import ActionWise


def a_set(generator: Any, n_actions: int) -> dict[str, Any]:
    user = {"id": f"u{generator.integers(5)}", "age": float(generator.integers(90)), "likes": ["é", "b\n"]}
    items = [
        {"id": f"a{k}", "price": round(float(generator.normal()), 4), "tags": {"new": bool(k % 2), "rank": k}}
        for k in range(n_actions)
    ]
    return {"user": user, "hour": str(generator.integers(4)), "_multi": items}


@pytest.fixture(scope="module", params=["default", "signed"])
def learned(request: pytest.FixtureRequest) -> Any:
    generator = np.random.default_rng(1)
    policy: Any = "hashed actionwise"
    if request.param == "signed":
        policy = o2pl.Member(Hashed(bits=10, signed=True), ActionWise(), objective=Outcome(False))
    learner = o2pl.Bandit(policy=policy, exploration=0.1, random_state=2)
    for _ in range(120):
        context = a_set(generator, int(generator.integers(2, 6)))
        decision = learner.act(context)
        learner.update(context, decision.action, float(decision.action == 1), decision.propensity)
    return learner.snapshot()


def plain(decider: Any, context: Any) -> Any:
    return decider.probabilities(decider.encoder.encode_one(context))


def test_texts_are_weighed_as_their_dictionaries(learned: Any) -> None:
    generator, texts = np.random.default_rng(3), SetTexts(learned)
    spread = 0.0
    for escaped in (True, False):
        for size in (1, 2, 5, 50):
            context = a_set(generator, size)
            found = texts.probabilities(json.dumps(context, ensure_ascii=escaped).encode(), size)
            np.testing.assert_allclose(found, plain(learned, context), rtol=1e-12)
            spread = max(spread, float(np.ptp(found)))
    assert spread > 0.2  # something was learned


def test_most_texts_are_not_parsed(learned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = SetTexts(learned)
    monkeypatch.setattr(texts, "_parsed", None)
    assert texts.probabilities(json.dumps(a_set(np.random.default_rng(4), 3)).encode(), 3).sum() == pytest.approx(1)


def test_texts_out_of_the_ordinary_are_parsed(learned: Any) -> None:
    context = {"n": 12345678901234567890123, "_multi": [{"id": "a"}, {"id": "b", "x": 1e-30}]}
    found = SetTexts(learned).probabilities(json.dumps(context).encode(), 2)
    np.testing.assert_allclose(found, plain(learned, context), rtol=1e-12)


def test_exploration_that_is_added_is_mixed_in(learned: Any) -> None:
    text = json.dumps(a_set(np.random.default_rng(5), 4)).encode()
    alone, mixed = SetTexts(learned).probabilities(text, 4), SetTexts(learned.exploring(0.3)).probabilities(text, 4)
    np.testing.assert_allclose(mixed, 0.7 * alone + 0.3 / 4, rtol=1e-12)


@pytest.mark.parametrize("odd", ["", ',"n":12345678901234567890123'])  # read by the kernel, or parsed
def test_too_many_products_are_refused_before_they_are_made(learned: Any, odd: str) -> None:
    texts = SetTexts(learned)
    for size, fine in ((400, True), (520, False), (20_000, False)):
        words = ",".join(f'"w{k}":"x"' for k in range(size))
        text = f'{{{words}{odd},"_multi":[{{{words}}},{{"a":1}}]}}'.encode()
        if fine:
            assert len(texts.probabilities(text, 2)) == 2
        else:
            with pytest.raises(o2pl.InvalidInput, match="expected fewer features"):
                texts.probabilities(text, 2)


@pytest.mark.parametrize("learned_from", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"{}", b'{"_multi":[]}', b'{"_multi":[{"a":1}]}', b'{"_multi":[{"a":1},{"a":[[1]]}]}',
        b'{"_multi":[{"a":1},{"a":1e999}]}', b'{"_multi":[{"a":1},{"a":NaN}]}', b'{"_multi":[{},{"a":"\xff\\ud800"}]}',
        b'{"_multi":[{},{}],"x":' + b'{"a":' * 3000 + b"1" + b"}" * 3001,
        b'{"_multi":[{},{}],"x":' + b'{"a":' * 65 + b"1" + b"}" * 66,
        b'{"_multi":[{},{},{}]}', b'{"_multi":[{},1]}', b'{"_multi":[{}],"_multi":[{}]}',
    ],
)  # fmt: skip
def test_what_is_no_action_set_is_refused(learned: Any, learned_from: bool, text: bytes) -> None:
    with pytest.raises(o2pl.InvalidInput):
        SetTexts(learned if learned_from else None).probabilities(text, 2)


def test_before_anything_is_learned_all_are_alike() -> None:
    text = json.dumps(a_set(np.random.default_rng(6), 3)).encode()
    np.testing.assert_array_equal(SetTexts().probabilities(text, 3), np.full(3, 1 / 3))


def test_a_policy_of_another_kind_is_refused() -> None:
    learner = o2pl.Bandit(2, policy="hashed", random_state=0)
    learner.update({"a": "b"}, 0, 1.0, 0.5)
    with pytest.raises(o2pl.InvalidInput, match="action sets of dictionaries"):
        SetTexts(learner.snapshot())
