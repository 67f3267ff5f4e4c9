"""Rows of the store as learners take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.serving.rows import decision, reward

from o2pl.serving.joining import join
from o2pl.serving.learning import interactions, learner_for, warm_up_training
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


def test_warming_up_learns_in_every_kind_of_application() -> None:
    warm_up_training()
