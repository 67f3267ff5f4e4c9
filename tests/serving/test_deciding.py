"""Decisions are drawn with the probabilities that are said, and can be made again from what is stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from tests.serving import deciders

from o2pl import InvalidInput
from o2pl.serving.deciding import Acting, action_text, joined, redecided, set_text, slot_text
from o2pl.serving.settings import Kind, Settings

NAMES = ("left", "middle", "right")
OFFER = set_text((b'"user":"u0"',), [action_text(name, [b'{"x":0.5}']) for name in "abc"])


class Row(NamedTuple):
    context: bytes
    actions: bytes | None
    action: int | None
    uniform: float
    preferred: int | None = None


def acting(kind: Kind, version: int = 1, **settings: Any) -> Acting:
    own: dict[str, Any] = {Kind.FIXED: {"actions": NAMES}, Kind.CONTINUOUS: {"bounds": (0.0, 10.0)}}.get(kind, {})
    made = {Kind.RANKED: deciders.ranked, Kind.FIXED: deciders.fixed, Kind.CONTINUOUS: deciders.continuous}[kind]
    return Acting(kind, Settings(**{**own, **settings}), version, made() if version else None)


def test_texts_are_dsjson_with_the_ids_as_features() -> None:
    actions = [action_text("a", [b'{"x": 1}', b"{ }", b' {"y":[2]}'.strip()]), action_text('q"é', [])]
    text = set_text((joined([b'{"u":1}', b"{}", b'{"v":2}'], "contextFeatures"), slot_text("top", [b"{}"])), actions)
    assert msgspec.json.decode(text) == {
        "u": 1, "v": 2, "slot": {"id": "top"}, "_multi": [{"id": "a", "x": 1, "y": [2]}, {"id": 'q"é'}],
    }  # fmt: skip
    assert msgspec.json.decode(set_text((b"", b""), [b"{}"])) == {"_multi": [{}]}


@pytest.mark.parametrize("part", [b"1", b'"x"', b"null", b"[1]"])
def test_features_that_are_no_object_are_refused(part: bytes) -> None:
    with pytest.raises(InvalidInput, match="expected an object"):
        joined([part], "contextFeatures")


def test_actions_are_drawn_by_inversion_of_the_probabilities() -> None:
    model = acting(Kind.RANKED)
    pi = model.ranked(OFFER, 3, 0.0).probabilities
    assert pi is not None
    assert pi.argmax() == 1  # what was learned
    for uniform in np.linspace(0, 0.999, 40):
        drawn = model.ranked(OFFER, 3, float(uniform))
        assert drawn.action == np.searchsorted(np.cumsum(pi), uniform, side="right")
        assert drawn.propensity == pi[drawn.action]


def test_exploration_of_the_settings_is_mixed_in() -> None:
    alone, mixed = (acting(Kind.RANKED, exploration_percentage=e).ranked(OFFER, 3, 0.5) for e in (None, 0.4))
    np.testing.assert_allclose(mixed.probabilities, 0.6 * alone.probabilities + 0.4 / 3, rtol=1e-12)  # type: ignore[operator]


@pytest.mark.parametrize("exploration", [None, 0.25])
@pytest.mark.parametrize("version", [0, 1])
def test_a_stored_decision_is_made_again(exploration: float | None, version: int) -> None:
    for uniform in np.random.default_rng(1).random(20).tolist():
        model = acting(Kind.RANKED, version, exploration_percentage=exploration)
        drawn = model.ranked(OFFER, 3, uniform)
        again = redecided(model, Row(OFFER, b'["a","b","c"]', drawn.action, uniform))
        assert again.action == drawn.action
        np.testing.assert_array_equal(again.probabilities, drawn.probabilities)

        model = acting(Kind.FIXED, version, exploration_percentage=exploration)
        drawn = model.fixed(b'{"user":"u1"}', uniform, [0, 2])
        again = redecided(model, Row(b'{"user":"u1"}', b'["left","right"]', drawn.action, uniform))
        assert again.action == drawn.action
        np.testing.assert_array_equal(again.probabilities, drawn.probabilities)
        assert drawn.probabilities is not None
        assert len(drawn.probabilities) == 2

        model = acting(Kind.CONTINUOUS, version, exploration_percentage=exploration)
        drawn = model.continuous(b"[0.5,-1]", uniform)
        assert redecided(model, Row(b"[0.5,-1]", None, None, uniform)) == drawn
        assert drawn.value is not None
        assert 0 <= drawn.value <= 10


def test_an_apprentice_answers_with_the_application_s_own_choice() -> None:
    model = acting(Kind.RANKED)
    drawn = model.taught(model.ranked(OFFER, 3, 0.5), 2)
    assert (drawn.action, drawn.propensity, drawn.preferred) == (2, 1.0, 1)
    np.testing.assert_array_equal(drawn.probabilities, [0, 0, 1])  # type: ignore[arg-type]
    again = redecided(model, Row(OFFER, b'["a","b","c"]', 2, 0.5, preferred=1))
    assert again.preferred == 1
    np.testing.assert_array_equal(again.probabilities, drawn.probabilities)  # type: ignore[arg-type]


def test_a_model_of_other_actions_is_not_acted_by() -> None:
    assert acting(Kind.FIXED, actions=("left", "right")).version == 0
    assert acting(Kind.CONTINUOUS, bounds=(0.0, 9.0)).version == 0
    assert acting(Kind.FIXED).version == acting(Kind.CONTINUOUS).version == 1


def test_the_uniform_density_before_the_first_model() -> None:
    drawn = acting(Kind.CONTINUOUS, 0, bounds=(2.0, 6.0)).continuous(b"[1]", 0.25)
    assert (drawn.value, drawn.propensity) == (3.0, 0.25)


@pytest.mark.parametrize("text", [b"[]", b"{}", b'["a"]', b"[true]", b"[[1]]", b"1", b'{"a":{"b":1}}', b"null"])
def test_contexts_of_real_valued_actions_are_numbers(text: bytes) -> None:
    for version in (0, 1):
        with pytest.raises(InvalidInput):
            acting(Kind.CONTINUOUS, version).continuous(text, 0.5)


def test_fixed_actions_refuse_what_cannot_be_learned_from() -> None:
    for version in (0, 1):
        for text in (b'{"a":[[1]]}', b'{"a":' * 65 + b"1" + b"}" * 65):
            with pytest.raises(InvalidInput):
                acting(Kind.FIXED, version).fixed(text, 0.5)


def test_every_kind_is_tried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[Kind, int]] = []

    def spied(kind: Kind, plain: Any) -> Any:
        def spy(self: Acting, *given: Any) -> Any:
            tried.append((kind, self.version))
            return plain(self, *given)

        return spy

    for kind in Kind:
        monkeypatch.setattr(Acting, kind.value, spied(kind, getattr(Acting, kind.value)))
    for kind in Kind:
        for version in (0, 1):
            acting(kind, version).try_out()
    assert {(kind, 1) for kind in Kind} <= set(tried)  # each published model has decided once
