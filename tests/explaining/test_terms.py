from __future__ import annotations

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets
from o2pl.encode.feature_names import Named
from o2pl.engine.acting import ActingMember
from o2pl.explaining.terms import Compared, Term, dense_terms, terms_of, terms_of_plan
from o2pl.features import Chain, Fourier, Intercept, Quadratic, Standardise, UserItems
from o2pl.features.plan import feature_plan
from o2pl.policies import ActionWise, FiniteClass, Softmax

GENERATOR = np.random.default_rng(0)
MAPS = {
    "linear": (Chain((Standardise(), Intercept())), 4),
    "quadratic": (Chain((Standardise(), Quadratic(), Intercept())), 4),
    "directions": (Chain((Standardise(), Quadratic(most=5, projected=3), Intercept())), 7),
    "plain": (Standardise(), 3),
}


def rows_of(width: int) -> np.ndarray:
    rows = GENERATOR.normal(size=(200, width)) * 4 + 20
    rows[:, 0] = GENERATOR.integers(2, size=200)  # an indicator stays as it is
    return rows.astype(np.float32)


@pytest.mark.parametrize("name", MAPS)
def test_polynomials_are_the_scores(name: str) -> None:
    features, width = MAPS[name]
    rows = rows_of(width)
    state = features.observe(features.init(width), rows)
    plan = feature_plan(features, state, width)
    assert plan is not None
    policy = Softmax(3)
    params = GENERATOR.normal(size=policy.n_params(plan.width))
    seen = terms_of_plan(plan, params.reshape(3, -1))
    scores = policy.scores(params, features.transform(state, rows))
    for row in range(5):
        for action in range(3):
            parts = seen.parts(action, rows[row])
            assert sum(float(part.sum()) for part in parts) == pytest.approx(scores[row, action], rel=1e-4, abs=1e-4)
    # Per unit of the inputs as they come: c + l·x + Σ q x_i x_j.
    constant, linear, products = seen.per_unit()
    x = rows[:5].astype(np.float64)
    again = constant + x @ linear.T
    if products.shape[1]:
        again = again + np.einsum("ni,kij,nj->nk", x, products, x)
    np.testing.assert_allclose(again, scores[:5], rtol=1e-3, atol=1e-3)


def test_what_is_far_off_is_cut_as_when_acting() -> None:
    features, width = MAPS["linear"]
    rows = rows_of(width)
    state = features.observe(features.init(width), rows)
    plan = feature_plan(features, state, width)
    assert plan is not None
    far = rows[0].copy()
    far[1] = 1e6
    assert terms_of_plan(plan, np.ones((1, 5))).standardised(far)[1] == 5


def test_users_and_items() -> None:
    features = UserItems(shared=2, most=4)  # directions of both
    rows = np.concatenate([np.zeros((100, 1)), GENERATOR.normal(size=(100, 5)) + 3], axis=1).astype(np.float32)
    state = features.observe(features.init(6), rows)
    params = GENERATOR.normal(size=features.width(6))
    member = ActingMember(features, state, ActionWise(), params, None)
    sets = ActionSets(features.transform(state, rows), np.array([0, 100]))
    scores = ActionWise().scores(params, sets)
    seen = dense_terms(member)
    assert seen is not None
    for row in range(5):
        total = sum(float(part.sum()) for part in seen.parts(0, rows[row]))
        assert total == pytest.approx(scores[row], rel=1e-4, abs=1e-4)


def test_names_of_terms() -> None:
    features, width = MAPS["quadratic"]
    rows = rows_of(width)[:, :2]
    state = features.observe(features.init(2), rows)
    plan = feature_plan(features, state, 2)
    member = ActingMember(features, state, Softmax(2), GENERATOR.normal(size=12), plan)
    names = [Named("age", ("age",)), Named("city=Rome", ("city",))]
    rows[0, 0] = 1
    found = terms_of(member.policy, member, Compared(rows[:1], False, 0, 1, names)) or []
    assert [term.name for term in found] == ["intercept", "age", "city=Rome", "age²", "age × city=Rome", "city=Rome²"]
    assert [term.features for term in found[3:]] == [("age",), ("age", "city"), ("city",)]


def test_what_is_no_polynomial_is_left_whole_and_others_may_join() -> None:
    table = FiniteClass(np.full((2, 3), 1 / 3))
    member = ActingMember(Chain(()), {}, table, np.zeros(2), None)
    compared = Compared(np.zeros((1, 1), np.float32), False, 0, 1, [])
    assert terms_of(table, member, compared) is None
    waves = Fourier(5)
    member = ActingMember(waves, waves.init(1), Softmax(2), np.zeros(10), None)
    assert terms_of(member.policy, member, compared) is None

    class Own:
        """A policy of a user's."""

    terms_of.register(Own, lambda policy, member, compared: [Term("all", ("all",), 1.0)])
    assert terms_of(Own(), member, compared) == [Term("all", ("all",), 1.0)]
