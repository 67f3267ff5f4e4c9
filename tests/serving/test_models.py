"""New models, settings and keys take the place of old ones as a whole; a damaged model does not."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.serving import deciders

import o2pl
from o2pl.serving.deciding import Acting
from o2pl.serving.models import Models, decider_of, policy_for
from o2pl.serving.settings import Settings
from o2pl.serving.store import Store


def test_what_is_published_is_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[int] = []
    with Store.open(tmp_path / "a.sqlite") as store:
        made = store.add_application("shop")
        models = Models(store)
        models.changed = lambda served: seen.append(served.acting.version)
        models.refresh()
        before = models.of[made.id]
        assert before.acting.version == 0
        assert len(models.keys) == 2
        models.refresh()
        assert models.of[made.id] is before
        body = deciders.body_of(deciders.ranked())
        for _ in range(2):
            store.add_model(made.id, body, 10, 10)
        models.refresh()
        assert models.of[made.id].acting.version == 2
        assert before.acting.version == 0  # calls that have begun with it go on
        store.pin(made.id, 1)
        models.refresh()
        assert models.of[made.id].acting.version == 1
        store.pin(made.id, None)
        store.put_settings(made.id, Settings(exploration_percentage=0.5))
        models.refresh()
        assert (models.of[made.id].acting.version, models.of[made.id].acting.exploration) == (2, 0.5)
        assert seen == [0, 2, 1, 2]
        store.add_model(made.id, body[:1000], 20, 20)
        with caplog.at_level(logging.ERROR):
            models.refresh()
        assert "cannot be read" in caplog.text
        assert models.of[made.id].acting.decider is not None
        assert models.of[made.id].acting.version == 2  # what was served goes on, under its own number


def test_a_version_that_cannot_be_served_touches_nobody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last good version is served, also after a restart; neighbours get their new models all the same."""
    good = deciders.body_of(deciders.ranked())
    with Store.open(tmp_path / "a.sqlite") as store:
        one, other = store.add_application("one"), store.add_application("other")
        store.add_model(one.id, good, 1, 1)
        store.add_model(one.id, good, 2, 2)
        store.add_model(one.id, b"no model", 3, 3)
        store.pin(one.id, 3)
        store.add_model(other.id, good, 1, 1)
        models = Models(store)
        models.refresh()
        served = models.of[one.id]
        assert served.acting.version == 2
        assert served.failed is not None
        assert served.failed.startswith("version 3 cannot be served: model: not a saved learner")
        assert (models.of[other.id].acting.version, models.of[other.id].failed) == (1, None)
        models.refresh()
        assert models.of[one.id] is served  # it is not tried again and again
        store.add_model(other.id, good, 2, 2)
        ends = Acting.try_out

        def sometimes(acting: Acting) -> None:
            if acting.version == 4:
                raise RuntimeError("of this version")
            ends(acting)

        monkeypatch.setattr(Acting, "try_out", sometimes)
        store.add_model(one.id, good, 4, 4)
        store.pin(one.id, None)
        models.refresh()
        assert (models.of[one.id].acting.version, models.of[other.id].acting.version) == (2, 2)
        assert "of this version" in str(models.of[one.id].failed)
        store.add_model(one.id, good, 5, 5)
        models.refresh()
        assert (models.of[one.id].acting.version, models.of[one.id].failed) == (5, None)


def test_bodies_are_policies_of_the_application(tmp_path: Path) -> None:
    assert decider_of(deciders.body_of(deciders.fixed())).names == ("left", "middle", "right")
    with pytest.raises(o2pl.InvalidInput, match="model: not a saved learner"):
        decider_of(b"no")
    learner = o2pl.Bandit(2, random_state=0)
    learner.update([0.0], 0, 1.0, 0.5)
    with pytest.raises(o2pl.InvalidInput, match="found a Bandit"):
        decider_of(deciders.body_of(learner))
    with Store.open(tmp_path / "a.sqlite") as store:
        store.add_application("shop")
        shop = store.application("shop")
        policy_for(shop.kind, shop.settings, deciders.ranked())
        for other in (deciders.fixed(), deciders.continuous()):
            with pytest.raises(o2pl.InvalidInput):
                policy_for(shop.kind, shop.settings, other)
        store.add_application("sides", "fixed", Settings(actions=("left", "right")))
        sides = store.application("sides")
        with pytest.raises(o2pl.InvalidInput, match="other actions"):
            policy_for(sides.kind, sides.settings, deciders.fixed())
