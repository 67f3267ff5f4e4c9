"""A store with hours of decisions in it, as servers and a trainer would have left them."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import o2pl
from o2pl.serving import gain_intervals
from o2pl.serving.applications import NewApplication
from o2pl.serving.batch_writes import DecisionRow
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.simulate import News
from o2pl.serving.store import Store


def fill(
    store: Store, name: str = "news", minutes: int = 60, per_minute: int = 40, seed: int = 0, now: float | None = None
) -> NewApplication:
    """Decisions of a policy that becomes better by the minute; in the last sixth, those without a click wait."""
    made = store.add_application(name, Kind.RANKED, Settings())
    generator, world = np.random.default_rng(seed), News()
    last = int((time.time() if now is None else now) // 60)
    for minute in range(last - minutes + 1, last + 1):
        skill = 9.0 * min((minute - last + minutes) / minutes * 1.5, 1.0)
        decided = []
        for k in range(int(generator.poisson(per_minute * (1.3 + np.cos((minute - last) / 9)) / 1.3))):
            visit = world.visit(generator)
            odds = np.exp(skill * visit.clicks)
            pi = 0.1 / 6 + 0.9 * odds / odds.sum()
            action = int(generator.choice(6, p=pi))
            reward = float(generator.random() < visit.clicks[action])
            at = minute * 60 + 60 * k / max(2 * per_minute, 1)
            open_still = minute > last - minutes // 6 and reward == 0
            decided.append((visit, pi, action, at, None if open_still else reward))
        _write(store, made.id, minute, decided, store.served_version(made.id))
        if (last - minute) % (minutes // 4) == 0:
            _model(store, made.id)
    return made


def _write(store: Store, application_id: int, minute: int, decided: list[Any], version: int) -> None:
    rows = []
    for k, (visit, pi, action, at, _) in enumerate(decided):
        ids = [article["id"] for article in visit.articles]
        context = {**visit.reader, "_multi": visit.articles}
        rows.append(
            DecisionRow(
                application_id=application_id, event_id=f"reader-{minute}-{k}", slot="", decided_at=at,
                context=json.dumps(context).encode(), actions=json.dumps(ids).encode(), action=action, value=None,
                propensity=float(pi[action]), probabilities=pi.astype("<f8").tobytes(), uniform=0.5, exploration=0.0,
                model_version=version, baseline=0,
            )
        )  # fmt: skip
    store.add(rows)
    known = [(place, row) for place, row in enumerate(decided) if row[4] is not None]
    newest = store.event(application_id, rows[-1].event_id)["decisions"][0].id
    first = newest - len(rows) + 1
    store.add_outcomes(
        [
            {"application_id": application_id, "decision_id": first + place, "reward": row[4],
             "by_default": row[4] == 0, "joined_at": row[3] + 5}
            for place, row in known
        ]
    )  # fmt: skip
    r = np.array([row[4] for _, row in known])
    p = np.array([row[1][row[2]] for _, row in known])
    weights = {"uniform": 1 / 6 / p, "baseline": np.array([row[2] == 0 for _, row in known]) / p}
    sums = {
        name: json.dumps([w.sum(), (w * r).sum(), (w**2).sum(), (w**2 * r**2).sum()]) for name, w in weights.items()
    }
    counts = Counter(visit.articles[action]["id"] for visit, _, action, _, _ in decided)
    earned = gain_intervals.tally(r, (0.0, 1.0), weights["uniform"], weights["baseline"])
    store.put_minutes(
        [
            {"application_id": application_id, "minute": minute, "decisions": len(decided), "outcomes": len(known),
             "defaults": int((r == 0).sum()), "reward": r.sum(), "reward_squared": (r**2).sum(), **sums,
             "standing": gain_intervals.pack(earned),
             "actions": json.dumps(counts)}
        ]
    )  # fmt: skip


def _model(store: Store, application_id: int) -> None:
    rows = store.learned_rows(application_id, 0, 100_000)
    learner = o2pl.Bandit(policy="hashed actionwise", random_state=0)
    texts = [json.loads(row.context) for row in rows[-300:]]
    columns = [np.array([getattr(row, name) for row in rows[-300:]]) for name in ("action", "reward", "propensity")]
    learner.fit(texts, *columns)
    store.add_model(application_id, saved(learner.snapshot()), rows[-1].id, len(rows))


def saved(decider: Any) -> bytes:
    """As it is published."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        decider.save(path)
        return path.read_bytes()


def decision(application_id: int, event_id: str, **values: Any) -> DecisionRow:
    """One row; what is not said is plain."""
    plain = {
        "slot": "", "decided_at": time.time(), "context": b"{}", "actions": None, "action": None, "value": None,
        "propensity": 1.0, "probabilities": None, "uniform": 0.5, "exploration": 0.0, "model_version": 0,
    }  # fmt: skip
    return DecisionRow(application_id=application_id, event_id=event_id, **(plain | values))
