from __future__ import annotations

import numpy as np
import pytest

import o2pl
from o2pl.features.user_items import HEAD, LAST, UserItems

G = np.random.default_rng(0)


def rows(n: int, users: int, items: int) -> np.ndarray:
    inputs = 3 + 2 * G.normal(size=(n, users + items))
    return np.column_stack([np.arange(n) % (LAST + 3), inputs]).astype(np.float32)


def test_levels_user_item_and_their_products() -> None:
    given, features = rows(60, 3, 2), UserItems(shared=3)
    seen = features.observe(features.init(6), given)
    out = features.transform(seen, given)
    scaled = (given[:, 1:] - given[:, 1:].mean(axis=0)) / given[:, 1:].std(axis=0)
    levels = np.zeros((60, HEAD))
    levels[:, 0] = 1
    for row, place in enumerate(given[:, 0].astype(int)):
        if place:
            levels[row, min(place, LAST)] = 1
    products = np.einsum("ni,nj->nij", scaled[:, :3], scaled[:, 3:]).reshape(60, 6)
    np.testing.assert_allclose(out, np.column_stack([levels, scaled, products]), atol=1e-4)
    assert features.width(6) == HEAD + 5 + 6


@pytest.mark.parametrize("most", [4, 1024])
def test_weights_of_a_score(most: int) -> None:
    """own · (head, ũ, x̃) + ũᵀ Θ x̃ is the score, projected or not."""
    given, features = rows(30, 4, 3), UserItems(shared=4, most=most)
    seen = features.observe(features.init(8), given)
    params = G.normal(size=features.width(8))
    out = features.transform(seen, given)
    own, cross = features.weights(seen, params)
    scaled = out[:, HEAD : HEAD + 7].astype(np.float64)
    expected = out[:, : HEAD + 7] @ own + np.einsum("ni,ij,nj->n", scaled[:, :4], cross, scaled[:, 4:])
    np.testing.assert_allclose(out @ params, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("users", "items", "most"), [(300, 5, 1024), (5, 300, 1024), (100, 100, 1024), (9, 9, 1)])
def test_there_are_never_more_products_than_asked_for(users: int, items: int, most: int) -> None:
    features = UserItems(shared=users, most=most)
    kept = features.factors(1 + users + items)
    assert kept[0] * kept[1] <= most
    assert min(kept) >= 1
    state = features.init(1 + users + items)
    assert (state["users"].shape, state["items"].shape) == ((kept[0], users), (kept[1], items))


def test_settings_are_checked() -> None:
    with pytest.raises(o2pl.InvalidInput, match="shared"):
        UserItems(shared=-1)
    with pytest.raises(o2pl.InvalidInput, match="most"):
        UserItems(most=0)
