"""Applications stand side by side; keys are known by their digests alone."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from o2pl.errors import InvalidInput
from o2pl.serving.access_control import AccessGuard, Limits
from o2pl.serving.applications import Role, add_key, replace_keys
from o2pl.serving.models import Models
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.store import Store

BOTH = True  # databases


def test_a_key_has_one_application_and_one_role(store: Store) -> None:
    shop, news = store.add_application("shop"), store.add_application("news")
    assert store.role_of(shop.write_key) == Role(shop.id, "write")
    assert store.role_of(news.read_key) == Role(news.id, "read")
    assert store.role_of("") is None
    assert store.role_of(shop.write_key + "x") is None
    assert store.role_of("\ud800") is None


def test_keys_are_not_stored(store: Store) -> None:
    made = store.add_application("shop")
    with store.reading() as connection:
        tables = ("applications", "keys", "meta")
        everything = str([connection.execute(text(f"SELECT * FROM {name}")).all() for name in tables])
    assert made.write_key not in everything
    assert made.read_key not in everything


def test_a_key_can_be_replaced(store: Store) -> None:
    made = store.add_application("shop")
    new = store.add_key(made.id, "read")
    assert store.role_of(new) == store.role_of(made.read_key) == Role(made.id, "read")
    with store.writing() as connection:
        assert replace_keys(connection, made.id, "read", but=new) == 1
    assert store.role_of(made.read_key) is None
    assert store.role_of(new) is not None
    assert store.role_of(made.write_key) is not None
    with pytest.raises(InvalidInput, match="role: found 'reed', expected 'read'"):
        store.add_key(made.id, "reed")


def test_settings_are_kept(store: Store) -> None:
    made = store.add_application("prices", Kind.CONTINUOUS, Settings(bounds=(0.0, 9.0)))
    assert store.settings(made.id).bounds == (0.0, 9.0)
    store.put_settings(made.id, Settings(bounds=(0.0, 5.0), log_retention_days=3))
    assert store.application("prices").settings == Settings(bounds=(0.0, 5.0), log_retention_days=3)
    with pytest.raises(InvalidInput, match="bounds: found none"):
        store.put_settings(made.id, Settings())
    assert store.settings(made.id).log_retention_days == 3


def test_names_are_found_or_named(store: Store) -> None:
    with pytest.raises(InvalidInput, match="o2pl app add"):
        store.application("shop")
    store.add_application("shop")
    with pytest.raises(InvalidInput, match="found 'shopp', expected 'shop'"):
        store.application("shopp")
    with pytest.raises(InvalidInput, match="already exists"):
        store.add_application("shop")
    with pytest.raises(InvalidInput, match="name"):
        store.add_application("a\x00")
    assert [each.name for each in store.applications()] == ["shop"]


def test_keys_expire(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """New ones after their days; replaced ones after the grace period, and none later than it was to end before."""
    now = 1e9
    monkeypatch.setattr("o2pl.serving.applications.time.time", lambda: now)
    made = store.add_application("shop")
    models = Models(store)
    guard = AccessGuard(models, Limits())

    def valid(*keys: str) -> list[bool]:
        models.refresh()
        assert [store.role_of(key) is not None for key in keys] == [guard.caller(key) is not None for key in keys]
        return [guard.caller(key) is not None for key in keys]

    with store.writing() as connection:
        short = add_key(connection, made.id, "write", days=2)
        new = add_key(connection, made.id, "write")
        assert replace_keys(connection, made.id, "write", new, days=5) == 1  # the first; `short` ends before
    assert valid(made.write_key, short, new, made.read_key) == [True] * 4
    now += 2 * 86400
    assert valid(made.write_key, short, new, made.read_key) == [True, False, True, True]
    now += 3 * 86400
    assert valid(made.write_key, short, new, made.read_key) == [False, False, True, True]
