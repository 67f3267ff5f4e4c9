"""Learners of every kind explain themselves; what they say adds up to what they do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import o2pl
from o2pl.explaining.explained import explained_labels
from o2pl.features import Chain, Fourier, Intercept, Standardise

ROUNDS = 150


def taught(learner: Any, context: Callable[[np.random.Generator], tuple[Any, ...]], **more: Any) -> tuple[Any, Any]:
    """A learner after some rounds, and a new context."""
    generator = np.random.default_rng(0)
    for _ in range(ROUNDS):
        given = context(generator)
        decision = learner.act(*given, **more)
        learner.update(decision, float(generator.random() < 0.3 + 0.4 * (sum(map(ord, str(decision.action))) % 2)))
    return learner, context(generator)


def numbers(generator: np.random.Generator, width: int = 4) -> tuple[Any]:
    return (generator.normal(size=width) * 3 + 10,)


def words(generator: np.random.Generator) -> tuple[Any]:
    user = {"id": f"u{generator.integers(5)}", "age": int(generator.integers(20, 60)), "likes": ["a", "b"][:1]}
    return ({"user": user, "hour": str(generator.integers(3)), "page": float(generator.normal())},)


def row_with_names(generator: np.random.Generator) -> tuple[Any]:
    city = ["Rome", "Oslo"][generator.integers(2)]
    return ({"age": float(generator.integers(20, 60)), "city": city, "new": bool(generator.integers(2))},)


def matrix(generator: np.random.Generator) -> tuple[Any]:
    return (generator.normal(size=(4, 3)) + 2,)


def user_and_items(generator: np.random.Generator) -> tuple[Any, Any]:
    return generator.normal(size=2), generator.normal(size=(5, 3)) + 1


def worded_items(generator: np.random.Generator) -> tuple[Any, Any]:
    items = [{"topic": ["news", "sport", "art"][generator.integers(3)], "age": k} for k in range(3)]
    return {"country": ["IT", "NO"][generator.integers(2)]}, items


IDS = {"ids": ["a", "b", "c", "d", "e"]}
KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "union": (lambda: o2pl.Bandit(3, random_state=0), numbers, {}),
    "two actions": (lambda: o2pl.Bandit(2, random_state=0, exploration=0.1), numbers, {}),
    "many inputs": (lambda: o2pl.Bandit(3, random_state=0), lambda g: numbers(g, 30), {}),
    "names": (lambda: o2pl.Bandit(actions=["news", "sport", "art"], random_state=0), row_with_names, {}),
    "paper's": (lambda: o2pl.O2PL(3, random_state=0), numbers, {}),
    "linear": (lambda: o2pl.O2PL(3, policy="linear", exploration=0.05, random_state=0), numbers, {}),
    "hashed": (lambda: o2pl.Bandit(3, policy="hashed", random_state=0), words, {}),
    "products": (
        lambda: o2pl.O2PL(3, policy=o2pl.Hashed(interactions=(("user", "hour"),), signed=True), random_state=0),
        words,
        {},
    ),
    "sets": (lambda: o2pl.Bandit(policy="actionwise", random_state=0), matrix, {}),
    "items": (lambda: o2pl.Bandit(random_state=0), user_and_items, {}),
    "ids": (lambda: o2pl.Bandit(random_state=0), user_and_items, IDS),
    "worded items": (lambda: o2pl.Bandit(random_state=0), worded_items, {}),
    "waves": (
        lambda: o2pl.O2PL(
            3, policy=o2pl.Member(Chain((Standardise(), Fourier(20), Intercept()))), sharpness=1, random_state=0
        ),
        numbers,
        {},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_adds_up_to_what_is_done(kind: str, tmp_path: Path) -> None:
    make, context, more = KINDS[kind]
    learner, given = taught(make(), context, **more)
    found = learner.explain(*given, **more)
    near = {"rel": 1e-4, "abs": 2e-5}  # scores are made in single precision

    assert sum(term.adds for term in found.terms) == pytest.approx(found.difference)
    by_feature = sum(feature.adds for feature in found.features) + found.intercept
    assert by_feature == pytest.approx(found.difference)
    assert sum(found.probabilities.values()) == pytest.approx(1)
    # log p(a)/p(b) without ε, which the definition of the acting policy gives:
    K = len(found.probabilities)
    both = (found.propensity, found.probabilities[found.against])
    own, other = ((p - found.epsilon / K) / (1 - found.epsilon) for p in both)
    greedy = found.without_exploration
    alone = greedy[found.action], greedy[found.against]
    assert found.exploring == pytest.approx(
        sum(abs(p - greedy[a]) for a, p in found.probabilities.items()) / 2, abs=1e-9
    )
    if found.sharpness is not None:
        assert found.deviation is None
        if other > 1e-12:
            assert np.log(own / other) == pytest.approx(found.sharpness * (found.difference + found.bonus), **near)
        if alone[1] > 1e-12:
            assert np.log(alone[0] / alone[1]) == pytest.approx(found.sharpness * found.difference, **near)
    else:  # the odds of a normal comparison, with the action ahead
        ahead = (found.difference + found.bonus) / found.deviation
        if other > 1e-10 and ahead > 0:
            assert other / own == pytest.approx(scipy.stats.norm.sf(ahead) / scipy.stats.norm.cdf(ahead), rel=1e-3)
        if alone[1] > 1e-10 and found.difference > 0:
            behind = scipy.stats.norm.sf(found.difference / 0.05) / scipy.stats.norm.cdf(found.difference / 0.05)
            assert alone[1] / alone[0] == pytest.approx(behind, rel=1e-2)

    # Every member: its own scores, asked of the policy as it acts.
    if not more and not isinstance(given[-1], list):
        encoder = learner._engine.encoder
        rows = encoder.encode_one(given[0] if len(given) == 1 else given)
        scores = learner.snapshot().scores(rows).reshape(len(found.members), -1)
        actions = list(found.probabilities)
        first, second = actions.index(found.action), actions.index(found.against)
        for member, own_scores in zip(found.members, scores, strict=True):
            assert member.difference == pytest.approx(own_scores[first] - own_scores[second], **near)
        assert sum(member.weight for member in found.members) == pytest.approx(1)

    # The two that are compared are the likeliest.
    assert sorted(found.probabilities.values())[-2:] == [found.probabilities[found.against], found.propensity]

    # A published policy says the same, but for the log.
    learner.snapshot().save(tmp_path / "policy.o2pl")
    published = o2pl.load(tmp_path / "policy.o2pl").explain(*given, **more)
    assert published.support is None
    assert published.terms == found.terms
    assert published.probabilities == found.probabilities
    assert found.support is not None


def test_of_a_decision_the_action_that_was_drawn_is_explained() -> None:
    learner, given = taught(o2pl.Bandit(3, random_state=0, exploration=0.9), numbers)
    for _ in range(20):
        decision = learner.act(*given)
        found = learner.explain(decision)
        assert found.action == decision.action
        assert found.propensity == decision.propensity
    with pytest.raises(o2pl.InvalidInput, match="expected one of the allowed actions"):
        learner.explain(decision, exclude=[decision.action])
    learner, given = taught(o2pl.Bandit(random_state=0), user_and_items, **IDS)
    decision = learner.act(*given, **IDS, exclude=["a"])
    found = learner.explain(decision)
    assert found.action == decision.action
    assert found.propensity == pytest.approx(decision.propensity)
    assert "a" not in learner.explain(*given, **IDS, exclude=["a"]).probabilities
    pages = learner.act(*given, **IDS, slots=2)
    with pytest.raises(o2pl.InvalidInput, match=r"decisions\[0\]"):
        learner.explain(pages)
    assert learner.explain(pages.decisions[1]).propensity == pytest.approx(pages.propensities[1])


def test_the_other_way_round_all_signs_change() -> None:
    learner, given = taught(o2pl.Bandit(3, random_state=0), numbers)
    one = learner.explain(*given, action=0, against=2)
    other = learner.explain(*given, action=2, against=0)
    assert one.difference == pytest.approx(-other.difference)
    assert {t.name: t.adds for t in one.terms} == pytest.approx({t.name: -t.adds for t in other.terms})


def test_some_actions_left_out() -> None:
    learner, given = taught(o2pl.Bandit(4, random_state=0), numbers)
    best = learner.explain(*given).action
    found = learner.explain(*given, exclude=[best])
    assert best not in found.probabilities
    assert sum(found.probabilities.values()) == pytest.approx(1)
    for _ in range(10):
        decision = learner.act(*given, exclude=[best])
        assert found.probabilities[decision.action] == decision.propensity


def test_an_item_known_by_id_has_a_term_of_its_own() -> None:
    generator = np.random.default_rng(0)
    learner = o2pl.Bandit(random_state=0)
    ids = ["good", "bad", "worse"]
    for _ in range(300):
        items = generator.normal(size=(3, 2))
        decision = learner.act(generator.normal(size=2), items, ids=ids)
        learner.update(decision, float(decision.action == "good" and generator.random() < 0.8))
    found = learner.explain(np.zeros(2), items, ids=ids)
    assert found.action == "good"
    assert "the item itself" in [feature.name for feature in found.features[:2]]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ({"action": 7}, r"action: found 7, expected one of 0, 1, 2"),
        ({"action": "news"}, r"action: found 'news'"),
        ({"action": 1, "against": 1}, "the action itself"),
        ({"ids": ["a"]}, "chooses among items"),
    ],
)
def test_refusals(ask: dict[str, Any], message: str) -> None:
    learner, given = taught(o2pl.Bandit(3, random_state=0), numbers)
    with pytest.raises(o2pl.InvalidInput, match=message):
        learner.explain(*given, **ask)


def test_names_are_suggested_and_other_learners_are_refused() -> None:
    learner, given = taught(o2pl.Bandit(actions=["news", "sport", "art"], random_state=0), row_with_names)
    with pytest.raises(o2pl.InvalidInput, match="expected 'sport'"):
        learner.explain(*given, action="sports")
    with pytest.raises(o2pl.InvalidInput, match="decision without a context"):
        learner.explain(o2pl.Decision("news", 0.5))
    with pytest.raises(AttributeError, match="has seen no data"):
        o2pl.Bandit(3).explain([1.0])
    prices = o2pl.GaussianO2PL(random_state=0)
    prices.update([1.0], 0.5, 1.0, 0.3)
    with pytest.raises(o2pl.InvalidInput, match="real-valued actions"):
        prices.snapshot().explain([1.0])
    with pytest.raises(o2pl.InvalidInput, match=r"use coefficients\(\)"):
        prices.explain([1.0])


def test_members_have_names() -> None:
    learner, _ = taught(o2pl.Bandit(3, random_state=0), numbers)
    assert (
        explained_labels(learner._engine)
        == [
            "linear, competing actions",
            "linear, independent actions",
            "linear, independent actions, L2 30",
            "quadratic, competing actions",
            "quadratic, independent actions",
            "linear, independent actions, last rows",
        ][: len(learner.snapshot().members)]
    )
