"""Where a kernel is found and where there is none; features as kernels are handed them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2pl.data.contexts import ActionSets, as_contexts
from o2pl.data.interactions import Interactions
from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.readers import SetsReader
from o2pl.engine.member import QUADRATIC
from o2pl.features import Chain, Fourier, Hashed, Standardise
from o2pl.kernels.fused_values import feature_rows_for_fused
from o2pl.kernels.registry import MemberProblem, features_for_registered, find_value
from o2pl.objectives import Pessimistic
from o2pl.policies import ActionWise, Softmax, SparseSoftmax, ThresholdClass, UniformMixture

X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
WORDS = [{"a": f"w{i % 2}"} for i in range(6)]
ROWS: dict[str, Any] = {
    "dense": X,
    "sets": ActionSets(X, np.array([0, 2, 3, 6])),
    "sparse": DictionaryReader(5).rows(WORDS),
    "sparse sets": SetsReader(DictionaryReader(5)).rows([WORDS[:2], WORDS[2:3], WORDS[3:]]),
}


@pytest.mark.parametrize("kind", ROWS)
def test_kinds_of_rows(kind: str) -> None:
    assert as_contexts(ROWS[kind]).kind == kind
    assert as_contexts(ROWS[kind]).n_inputs == (32 if "sparse" in kind else 3)
    features: Any = Hashed(bits=5) if "sparse" in kind else Standardise()
    flat = ROWS[kind].values if "sets" in kind else ROWS[kind]
    seen = features.observe(features.init(3), flat)
    made = features_for_registered(features, seen, ROWS[kind])
    assert len(made) == len(ROWS[kind])
    assert as_contexts(made).kind == kind


def problem(policy: Any, features: Any, kind: str, start: int = 0) -> MemberProblem:
    n = len(ROWS[kind])
    rows = Interactions(ROWS[kind], np.zeros(n, int), np.ones(n), np.full(n, 0.5), (0, 1))
    seen = features.observe(features.init(3), ROWS[kind].values if "sets" in kind else ROWS[kind])
    objective = Pessimistic()
    return MemberProblem(policy, objective, features, seen, rows, start, objective.prepare(rows), None, {})


@pytest.mark.parametrize(
    ("policy", "features", "kind", "start", "expected"),
    [
        (Softmax(2), Standardise(), "dense", 0, True),
        (Softmax(2), Chain((Fourier(4),)), "dense", 3, True),
        (UniformMixture(Softmax(2)), Standardise(), "dense", 0, False),
        (ActionWise(), Standardise(), "sets", 0, True),
        (ActionWise(), Hashed(bits=5), "sparse sets", 0, False),
        (SparseSoftmax(2), Hashed(bits=5), "sparse", 0, True),
        (ThresholdClass((0.0, 1.0)), Chain(()), "dense", 0, True),
        (ThresholdClass((0.0, 1.0)), Chain(()), "dense", 3, False),
    ],
)
def test_a_kernel_is_found_only_where_it_is_the_same(
    policy: Any, features: Any, kind: str, start: int, expected: bool
) -> None:
    assert (find_value(problem(policy, features, kind, start)) is not None) == expected


@pytest.mark.parametrize("features", [QUADRATIC, Chain((Standardise(), Fourier(4)))])
def test_rows_of_features_are_made_when_they_are_asked_for(features: Any) -> None:
    given = problem(Softmax(2), features, "dense")
    expected = features.transform(given.seen, X)
    for rows in (slice(None), slice(2, 5), np.array([4, 0, 0])):
        np.testing.assert_allclose(feature_rows_for_fused(given)(rows), expected[rows], rtol=1e-5, atol=1e-6)
