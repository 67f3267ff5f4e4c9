"""Readers of a page whose best policy is known, written straight to a store: what servers and clients would do."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import numpy as np

from o2pl.learners import load
from o2pl.serving.batch_writes import DecisionRow, RewardRow
from o2pl.serving.store import Store

TOPICS = ("news", "sport", "arts")


def visits(n: int, generator: Any) -> list[tuple[bytes, Any]]:
    """Texts of action sets, and the probability of a reward for each action: each reader likes one topic."""
    made = []
    for _ in range(n):
        likes, order = int(generator.integers(3)), generator.permutation(3)
        reader = f'"reader":{{"likes":"{TOPICS[likes]}","age":{int(generator.integers(20, 70))}}}'
        items = ",".join(f'{{"id":"a{k}","topic":"{TOPICS[k]}"}}' for k in order)
        made.append((f'{{{reader},"_multi":[{items}]}}'.encode(), np.where(order == likes, 0.8, 0.2)))
    return made


def decide(
    store: Store, visits: list[tuple[bytes, Any]], generator: Any, prefix: str, application: int = 1,
    at: float | None = None, version: int | None = None, **changes: Any,
) -> float:  # fmt: skip
    """As a server decides, with what is served now; the mean of the expected rewards."""
    served = store.served_version(application) if version is None else version
    pi = np.full((len(visits), 3), 1 / 3)
    if served:
        decider = load(io.BytesIO(store.model_body(application, served)))
        pi = decider.predict_proba([json.loads(text) for text, _ in visits]).reshape(-1, 3)
    now, rows, rewards, total = time.time() if at is None else at, [], [], 0.0
    for place, ((text, means), own) in enumerate(zip(visits, pi, strict=True)):
        u = float(generator.random())
        action = int(min((own.cumsum() <= u).sum(), 2))
        names = json.dumps([one["id"] for one in json.loads(text)["_multi"]]).encode()
        event, total = f"{prefix}-{place}", total + means[action]
        row = DecisionRow(
            application, event, "", now, text, names, action, None, float(own[action]), own.astype("<f8").tobytes(), u,
            0.0, served,
        )  # fmt: skip
        rows.append(row._replace(**changes))
        rewards.append(RewardRow(application, event, "", float(generator.random() < means[action]), now))
    store.add(rows)
    store.add(rewards)
    return total / len(visits)
