"""The newest model is served, unless it is withdrawn or another one is pinned."""

from __future__ import annotations

import pytest

from o2pl.errors import InvalidInput
from o2pl.serving.store import Store

BOTH = True  # databases


def test_the_version_that_is_served(store: Store) -> None:
    shop, news = store.add_application("shop").id, store.add_application("news").id
    assert store.served_version(shop) == 0
    assert [store.add_model(shop, body, 5, 10) for body in (b"one", b"two", b"three")] == [1, 2, 3]
    assert store.add_model(news, b"other", 1, 1) == 1
    assert store.served_version(shop) == 3
    store.withdraw(shop, 3, "worse than the baseline")
    assert store.served_version(shop) == 2
    store.pin(shop, 1)
    assert store.served_version(shop) == 1
    store.add_model(shop, b"four", 6, 11)
    assert store.served_version(shop) == 1
    store.pin(shop, None)
    assert store.served_version(shop) == 4
    store.pin(shop, 0)
    assert store.served_version(shop) == 0
    store.pin(shop, None)
    store.withdraw(shop, 4, "by hand")
    store.withdraw(shop, 3, None)
    assert store.served_version(shop) == 3
    assert store.served_version(news) == 1
    assert store.model_body(shop, 2) == b"two"
    assert [(row.version, row.withdrawn) for row in store.model_versions(shop, 2)] == [(4, "by hand"), (3, None)]


def test_a_version_that_is_not_there(store: Store) -> None:
    shop = store.add_application("shop").id
    for call in (lambda: store.model_body(shop, 1), lambda: store.withdraw(shop, 1, "x"), lambda: store.pin(shop, 1)):
        with pytest.raises(InvalidInput, match="found no version 1"):
            call()
    assert store.served_version(shop) == 0
