"""Rows of the store as learners take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.serving.rows import decision, reward

from o2pl.learners import Decider
from o2pl.serving.application_learner import interactions, learner_for, published
from o2pl.serving.applications import Application
from o2pl.serving.models import decider_of
from o2pl.serving.reward_join import join
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.store import Store


def test_texts_out_of_the_ordinary_are_read_too_and_bad_ones_left_out(store: Store, caplog: Any) -> None:
    store.add_application("shop")
    application = store.application("shop")
    slow = b'{"user":{"n":1e-999},"_multi":[{"id":"a"},{"id":"b"}]}'
    texts = [None, slow, b'{"_multi":[]}', None, b"{"]
    store.add([decision(f"e{k}", **({} if text is None else {"context": text})) for k, text in enumerate(texts)])
    store.add([reward(f"e{k}", k / 10) for k in range(len(texts))])
    join(store, application, 1002.0)
    log = interactions(application, store.learned_rows(1))
    assert log is not None
    assert log.ids.tolist() == [1, 2, 4]
    assert log.rewards.tolist() == [0.0, 0.1, 0.3]
    assert log.actions.tolist() == [0, 0, 0]  # the one that was played stands alone
    assert log.contexts.sizes.tolist() == [1, 1, 1]
    assert len(caplog.records) == 2
    learner = learner_for(application).partial_fit(log)
    assert np.isfinite(learner._engine.members[0].params).all()


class Row(NamedTuple):
    """A row of the store: a decision with its reward."""

    id: int
    event_id: str
    context: bytes
    actions: bytes
    action: int
    value: float
    reward: float
    propensity: float = 0.5


def row(kind: Kind, k: int) -> Row:
    text = {
        Kind.RANKED: b'{"x":%d,"u":"u%d","_multi":[{"id":"a","y":%d},{"id":"b"},{"id":"c"}]}' % (k % 5, k % 7, k % 3),
        Kind.FIXED: b'{"x":%d,"u":"u%d"}' % (k % 5, k % 7),
        Kind.CONTINUOUS: b"[%d,%d]" % (k % 5, k % 7),
    }[kind]
    return Row(k, str(k), text, b'["a","b","c"]', k % 3, (1 + k % 11) / 12, float(k % 2))


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_application_learns_in_batches_and_is_published(kind: Kind) -> None:
    settings = Settings(
        actions=("a", "b", "c") if kind is Kind.FIXED else (),
        bounds=(0.0, 1.0) if kind is Kind.CONTINUOUS else None,
    )
    application = Application(0, "", kind, settings, None, 0.0)
    learner = learner_for(application)
    for batch in range(2):
        log = interactions(application, [row(kind, 250 * batch + k) for k in range(250)])
        assert log is not None
        assert len(log) == 250
        learner = learner.partial_fit(log, at_most=300)
    assert isinstance(decider_of(published(application, learner)), Decider)
