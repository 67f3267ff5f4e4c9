from __future__ import annotations

import numpy as np

from o2pl import _core
from o2pl.data.contexts import ActionSets
from o2pl.features.user_items import LAST, UserItems
from o2pl.kernels.offers import PackedOffers
from o2pl.policies.sampling import acting_numbers
from o2pl.protocols import Explored

G = np.random.default_rng(0)
NONE = np.empty(0)


def offers(n: int, users: int, items: int) -> ActionSets:
    offsets = np.concatenate([[0], np.cumsum(G.integers(1, 6, size=n))])
    return ActionSets(
        (2 + G.normal(size=(offsets[-1], items))).astype(np.float32),
        offsets,
        G.normal(size=(n, users)).astype(np.float32),
        None,
        np.arange(n) % (LAST + 2),
    )


def test_scores_are_those_of_the_features_and_a_decision_is_that_of_the_batch() -> None:
    sets = offers(30, 3, 4)
    members, plain = [], []
    for most in (1024, 2):  # with and without projections
        features = UserItems(shared=3, most=most)
        seen = features.observe(features.init(8), sets.inputs)
        params = G.normal(size=features.width(8))
        members.append((features, seen, params))
        plain.append(features.transform(seen, sets.inputs) @ params)
    packed = PackedOffers(members)
    scores = packed.scores(sets)
    np.testing.assert_allclose(scores, np.stack(plain), rtol=1e-4, atol=1e-4)
    acting = acting_numbers(np.array([0.3, 0.7]), 2.0, Explored(0.1, NONE, NONE))
    for row in range(30):
        one, own = sets[row : row + 1], slice(sets.offsets[row], sets.offsets[row + 1])
        pi = np.empty(own.stop - own.start)
        _core.acting_rows(scores[:, own].copy(), np.array([0, pi.size]), acting, pi)
        drawn = _core.decide_item(int(one.slots[0]), one.shared, one.values, packed.numbers, acting, 0.4)
        assert drawn == (_core.draw_one(pi, 0.4), pi[drawn[0]])


def test_nobody_and_no_list() -> None:
    sets = offers(5, 0, 2)
    features = UserItems()
    seen = features.observe(features.init(3), sets.inputs)
    params = G.normal(size=features.width(3))
    alone = ActionSets(sets.values, sets.offsets, sets.shared)
    expected = features.transform(seen, alone.inputs) @ params
    np.testing.assert_allclose(
        PackedOffers([(features, seen, params)]).scores(alone)[0], expected, rtol=1e-4, atol=1e-4
    )
