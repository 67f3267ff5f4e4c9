"""Fused decisions beside the plain composition: features, `policy.scores`, mixture, sharpen, explore, draw."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import o2pl
from o2pl import Member
from o2pl.data.contexts import ActionSets
from o2pl.encode import Encoder
from o2pl.engine.acting import ActingMember
from o2pl.engine.decider import Decider
from o2pl.engine.member import LINEAR, QUADRATIC
from o2pl.features import Chain, Fourier, Hashed, Intercept, Quadratic, Standardise
from o2pl.features.plan import feature_plan
from o2pl.kernels.registry import features_for_registered
from o2pl.policies import ActionWise, Gaussian, Softmax, SparseSoftmax, UniformMixture
from o2pl.policies.sampling import acting_numbers
from o2pl.protocols import Explored

D = 4
NONE = np.empty(0)


def acting(scores: list[Any], shares: Any, sharpness: float, explored: Explored) -> Any:
    """p = (1 - ε) softmax(sharpness (log Σ_m ρ_m π_m + bonus)) + ε share of one row. scores: M of [K]"""
    softmax = [np.exp(each - each.max()) / np.exp(each - each.max()).sum() for each in scores]
    mixture = sum(share * each for share, each in zip(shares, softmax, strict=True))
    logits = sharpness * (np.log(mixture) + (explored.bonus if len(explored.bonus) else 0.0))
    sharp = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    share = explored.share if len(explored.share) else 1 / len(sharp)
    return (1 - explored.epsilon) * sharp + explored.epsilon * share


class Kind(NamedTuple):
    features: tuple[Any, ...]
    policy: Any
    encoder: Encoder
    context: Any  # a function of a generator


def words(generator: Any) -> dict[str, Any]:
    return {"a": f"w{generator.integers(5)}", "b": {"c": f"v{generator.integers(3)}", "d": float(generator.normal())}}


def row(generator: Any) -> Any:
    return 2 * generator.normal(size=D).astype(np.float32)


def a_set(generator: Any) -> Any:
    return generator.normal(size=(generator.integers(1, 20), D)).astype(np.float32)


KINDS = {
    "softmax": Kind((LINEAR,), Softmax(11), Encoder(width=D), row),
    "union": Kind((LINEAR, QUADRATIC), Softmax(3), Encoder(width=D), row),
    "raw": Kind(
        (Chain(()), Quadratic(), Chain((Standardise(clip=1.0), Intercept()))), Softmax(8), Encoder(width=D), row
    ),
    "projected": Kind((Chain((Standardise(), Quadratic(most=3, projected=2))),), Softmax(2), Encoder(width=D), row),
    "sets": Kind(
        (Standardise(), Chain((Standardise(), Quadratic()))), ActionWise(), Encoder(items=True, width=D), a_set
    ),
    "one set": Kind((LINEAR,), ActionWise(), Encoder(items=True, width=D), a_set),
    "dictionaries": Kind((Hashed(bits=7),), SparseSoftmax(3), Encoder(hashed=(7, False, ())), words),
    "hashed union": Kind((Hashed(bits=7), Hashed(bits=7)), SparseSoftmax(3), Encoder(hashed=(7, False, ())), words),
    "products": Kind(
        (Hashed(bits=7, signed=True, interactions=(("a", "b"),)),),
        SparseSoftmax(3),
        Encoder(hashed=(7, True, (("a", "b"),))),
        words,
    ),
}
EXPLORED = {
    "none": lambda k: Explored(0.0, NONE, NONE),
    "uniform": lambda k: Explored(0.3, NONE, NONE),
    "bonus": lambda k: Explored(0.1, np.linspace(-0.5, 0.5, k), NONE),
    "share": lambda k: Explored(0.2, NONE, np.arange(k) / max(sum(range(k)), 1)),
    "both": lambda k: Explored(0.2, np.linspace(0.5, -0.5, k), np.arange(k)[::-1] / max(sum(range(k)), 1)),
}


def decider_of(kind: Kind, sharpness: float, explored: Explored) -> Decider:
    """With random parameters, of features that have seen some contexts."""
    generator = np.random.default_rng(0)
    rows = kind.encoder.encode([kind.context(generator) for _ in range(60)])
    members: list[ActingMember] = []
    for features in kind.features:
        width = (rows.values if isinstance(rows, ActionSets) else rows).width if "Sparse" in str(type(rows)) else D
        seen = features.observe(features.init(width), rows.values if isinstance(rows, ActionSets) else rows)
        seen = next((member.seen for member in members if member.features == features), seen)  # as in an engine
        size = kind.policy.n_params(features.width(width, seen))
        plan = None if isinstance(features, Hashed) else feature_plan(features, seen, width)
        if isinstance(kind.policy, SparseSoftmax):
            size -= 2 * kind.policy.n_actions * len(members)  # later ones have not learned of the newest features
        members.append(ActingMember(features, seen, kind.policy, 0.5 * generator.normal(size=size), plan))
    shares = generator.dirichlet(np.ones(len(members)))
    return Decider(members, acting_numbers(shares, sharpness, explored), sharpness, kind.encoder)


# Action sets differ in their number of actions: a bonus or a share of each has no meaning.
CASES = [pair for pair in itertools.product(KINDS, EXPLORED) if "set" not in pair[0] or pair[1] in ("none", "uniform")]


@pytest.mark.parametrize("sharpness", [1.0, 5.0])
@pytest.mark.parametrize(("name", "explored"), CASES)
def test_decisions_are_those_of_the_parts(name: str, sharpness: float, explored: str) -> None:
    kind, generator = KINDS[name], np.random.default_rng(1)
    rule = EXPLORED[explored](getattr(kind.policy, "n_actions", 0))
    decider = decider_of(kind, sharpness, rule)
    contexts = [kind.context(generator) for _ in range(40)]
    uniforms = generator.random(40)
    rows = kind.encoder.encode(contexts)
    actions, propensities = decider.sample(rows, uniforms)
    for r, (context, uniform) in enumerate(zip(contexts, uniforms, strict=True)):
        one = kind.encoder.encode_one(context)
        scores = [
            m.policy.scores(m.params, features_for_registered(m.features, m.seen, one)).reshape(-1)
            for m in decider.members
        ]
        expected = acting(scores, decider.acting[4 : 4 + len(scores)], sharpness, rule)
        chosen = int(np.searchsorted(np.cumsum(expected), uniform, side="right"))
        decision = decider.decide(context, uniform)
        assert decision == (actions[r], propensities[r])  # to the bit: alone and in a batch
        assert decision.action == min(chosen, len(expected) - 1)
        assert decision.propensity == pytest.approx(expected[chosen], rel=2e-4)
        np.testing.assert_allclose(decider.probabilities(one).reshape(-1), expected, rtol=2e-4, atol=1e-9)
        likelihoods = decider.member_likelihoods(one, np.array([decision.action]))[:, 0]
        alone = [acting([each], [1.0], sharpness, EXPLORED["none"](0))[decision.action] for each in scores]
        np.testing.assert_allclose(likelihoods, alone, rtol=2e-4)
    np.testing.assert_array_equal(decider.likelihoods(rows, actions), propensities)


@pytest.mark.parametrize("name", ["softmax", "union", "one set", "dictionaries", "hashed union"])
def test_the_compiled_path_is_taken(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else the test above compares the plain path with itself."""
    decider = decider_of(KINDS[name], 1.0, EXPLORED["uniform"](0))
    decider.save(tmp_path / "decider.o2pl")
    saved = o2pl.load(tmp_path / "decider.o2pl")
    monkeypatch.setattr(Decider, "sample", None)
    for each in (decider, saved):
        each.decide(KINDS[name].context(np.random.default_rng(2)), 0.3)


@pytest.mark.parametrize("learn_scale", [False, True])
@pytest.mark.parametrize("features", [LINEAR, QUADRATIC, Chain(())])
def test_real_valued_decisions_are_those_of_the_parts(features: Any, learn_scale: bool) -> None:
    generator, policy = np.random.default_rng(3), Gaussian(0.4, 0.7, learn_scale)
    rows = generator.normal(size=(50, D)).astype(np.float32)
    seen = features.observe(features.init(D), rows)
    params = 0.3 * generator.normal(size=policy.n_params(features.width(D)))
    plan = feature_plan(features, seen, D)
    numbers = acting_numbers(np.ones(1), 1.0, EXPLORED["none"](0))
    decider = Decider([ActingMember(features, seen, policy, params, plan)], numbers, 1.0, Encoder(width=D))
    scale = np.exp(params[-1]) if learn_scale else 0.7
    theta = params[: features.width(D)]
    uniforms = generator.random(50)
    actions, densities = decider.sample(rows, uniforms)
    for r in range(50):
        mean = 0.4 + float(features_for_registered(features, seen, rows[r : r + 1]).astype(float)[0] @ theta)
        decision = decider.decide(rows[r], uniforms[r])
        assert decision == (actions[r], densities[r])
        z = (decision.action - mean) / scale
        assert decision.propensity == pytest.approx(np.exp(-z * z / 2) / (scale * np.sqrt(2 * np.pi)), rel=1e-4)
        np.testing.assert_allclose(decider.means(rows[r : r + 1]), mean, rtol=1e-5, atol=1e-6)


def test_of_the_draw_only_the_uniform_number_decides() -> None:
    """Over a grid of numbers, actions come as often as their probabilities say."""
    decider = decider_of(KINDS["softmax"], 1.0, EXPLORED["uniform"](0))
    context = row(np.random.default_rng(4))
    grid = (np.arange(4000) + 0.5) / 4000
    found = np.bincount([decider.decide(context, u).action for u in grid], minlength=11) / 4000
    np.testing.assert_allclose(found, decider.probabilities(context[None])[0], atol=5e-4)


@pytest.mark.parametrize("policy", ["linear", "actionwise", "gaussian"])
def test_contexts_of_any_kind_decide_as_rows_of_single_precision_do(policy: str) -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        context = a_set(generator) if policy == "actionwise" else row(generator)
        wide = np.zeros((*context.shape[:-1], 2 * D), np.float32)
        wide[..., ::2] = context
        kinds = [context, context.astype(np.float64), context.tolist(), wide[..., ::2], np.asfortranarray(context)]
        decisions = set()
        for each in kinds:
            learner: Any = o2pl.GaussianO2PL(random_state=0)
            if policy != "gaussian":
                learner = o2pl.O2PL(None if policy == "actionwise" else 3, policy=policy, random_state=0)
            decisions.add(learner.act(each))
        assert len(decisions) == 1


def test_policies_of_other_kinds_are_decided_by_their_parts() -> None:
    for features, policy in itertools.product(
        (LINEAR, Chain((Standardise(), Fourier(5)))), (Softmax(3), UniformMixture(Softmax(3), 0.1))
    ):
        decider = decider_of(Kind((features,), policy, Encoder(width=D), row), 2.0, EXPLORED["uniform"](0))
        context = row(np.random.default_rng(6))
        (member,) = decider.members
        scores = policy.scores(member.params, features_for_registered(features, member.seen, context[None]))[0]
        expected = acting([scores], [1.0], 2.0, EXPLORED["uniform"](0))
        np.testing.assert_allclose(decider.probabilities(context[None])[0], expected, rtol=2e-4)
        assert decider.decide(context, 0.0).propensity == pytest.approx(expected[0], rel=2e-4)


def test_a_member_with_another_policy_beside_a_softmax() -> None:
    members = (Member(), Member(policy=UniformMixture(Softmax(3), 0.2)))
    learner = o2pl.O2PL(3, policy=members, random_state=0)
    x = np.random.default_rng(7).normal(size=(120, 2))
    run = learner.run((x, (np.arange(3) == (x[:, :1] > 0)).astype(float)))
    assert run.rewards[-40:].mean() > 0.7
