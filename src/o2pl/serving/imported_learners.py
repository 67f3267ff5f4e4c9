"""Imported learners: learning of an application goes on from them.

A learner's file, or a log that the application's own learner learns from, is stored as it was prepared. The trainer
begins with it, and adds the outcomes that come after the import. A policy without its log cannot be learned on with:
it is only served.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from o2pl.data.interactions import Interactions
from o2pl.engine.decider import Decider
from o2pl.engine.schedules import Geometric, as_schedule
from o2pl.errors import InvalidInput
from o2pl.learners import Bandit, load
from o2pl.serving import training_batches, versions
from o2pl.serving.application_learner import HISTORY, interactions, learner_for, published, takes_whole_sets
from o2pl.serving.applications import Application
from o2pl.serving.models import policy_for
from o2pl.serving.schema import imports, trainings
from o2pl.serving.settings import Kind


class Prepared(NamedTuple):
    """What is stored of an imported file."""

    policy: bytes  # to be served
    learner: bytes | None = None  # to be learned on with; None: a policy without its log
    rows: int = 0  # of the learner's log


# -- preparing


def of_file(application: Application, found: Any, body: bytes) -> Prepared:
    """Prepare what was loaded from a file. body: its bytes."""
    if isinstance(found, Decider):
        policy_for(application.kind, application.settings, found)
        return Prepared(body)
    return _of_learner(application, found)


def of_log(application: Application, log: Interactions) -> Prepared:
    """Prepare the application's own learner, after it has learned from a log."""
    learner = learner_for(application)
    newest = log[len(log) - HISTORY :] if len(log) > HISTORY else log
    return _of_learner(application, learner.fit(newest))


def _of_learner(application: Application, learner: Any) -> Prepared:
    if getattr(learner, "_engine", None) is None or not len(learner.log_):
        raise InvalidInput("model: found a learner that has seen no data, expected one that has, or a policy")
    check_rewards(application, learner)
    policy_for(application.kind, application.settings, learner.snapshot())
    rows = len(learner.log_)
    _limit_history(learner)
    body = _saved(learner)
    loaded = learner_of(body)
    policy = published(application, loaded)
    _try_out(application, loaded)
    return Prepared(policy, body, rows)


def check_rewards(application: Application, learner: Any) -> None:
    """Refuse a learner whose rewards have another range than those of the application."""
    ends, wanted = getattr(learner, "reward_range", None), application.settings.reward_range
    if ends is not None and tuple(ends) != tuple(wanted):
        raise InvalidInput(
            f"model: found a learner of rewards from {ends[0]:g} to {ends[1]:g}, expected {wanted[0]:g} to"
            f" {wanted[1]:g} (rewardRange)"
        )


def _limit_history(learner: Any) -> None:
    """Let a learner that never forgets learn from its newest rows, as learners of the service do."""
    if not hasattr(learner, "schedule") or as_schedule(learner.schedule).start(10**9) > 0:
        return
    watch = learner._engine.watch
    learner.schedule = Geometric(window=HISTORY)
    if isinstance(learner, Bandit):  # it would watch for changes no longer
        learner.changes = None if watch is None else watch.change


def _saved(learner: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "learner.o2pl")
        learner.save(path)
        return path.read_bytes()


def learner_of(body: bytes) -> Any:
    """Load a stored learner."""
    return load(io.BytesIO(body), name="imported learner", outside=True)


def _try_out(application: Application, learner: Any) -> None:
    """Learn from a few made-up outcomes: whatever fails then would fail when the first reward arrives."""
    rows = [_outcome(application, learner, k) for k in range(4)]
    found = interactions(application, rows, takes_whole_sets(application, learner))
    if found is None or len(found) < len(rows):
        raise InvalidInput("model: cannot be learned on with, since it cannot read this application's contexts")
    learner.partial_fit(found, at_most=100)


def _outcome(application: Application, learner: Any, k: int) -> Any:
    low, high = application.settings.reward_range
    row: dict[str, Any] = {"id": k, "event_id": f"trial-{k}", "propensity": 0.5, "reward": (low, high)[k % 2]}
    if application.kind is Kind.CONTINUOUS:
        bounds, width = application.settings.bounds or (0.0, 1.0), learner._engine.encoder.width or 1
        context: Any = [float(k)] * width
        row |= {"value": (bounds[0] + bounds[1]) / 2, "action": None, "actions": None}
    elif application.kind is Kind.FIXED:
        context = {"a": f"b{k}", "x": k}
        row |= {"action": 0, "actions": json.dumps(application.settings.actions).encode(), "value": None}
    else:
        context = {"user": {"id": f"u{k}"}, "_multi": [{"id": "a", "b": k}, {"id": "b"}]}
        row |= {"action": k % 2, "actions": b'["a","b"]', "value": None}
    return SimpleNamespace(context=json.dumps(context).encode(), **row)


# -- in the store


class Import(NamedTuple):
    """An imported learner, without its body."""

    id: int
    rows: int


def put(connection: Connection, application_id: int, found: Prepared, pinned: bool) -> int:
    """Publish the policy as the newest version, and let learning go on from the learner. Returns the version."""
    outcome = 0
    if found.learner is not None:
        end(connection, application_id)
        outcome = training_batches.reset(connection, application_id)
        row = {"application_id": application_id, "made_at": time.time(), "rows": found.rows, "body": found.learner}
        connection.execute(insert(imports).values(row))
    version = versions.add_model(connection, application_id, found.policy, outcome, found.rows)
    versions.pin(connection, application_id, version if pinned else None)
    return version


def current(connection: Connection, application_id: int) -> Import | None:
    """Return the learner that learning went on from; None: it began with nothing."""
    own = (imports.c.application_id == application_id, imports.c.ended_at.is_(None))
    row = connection.execute(
        select(imports.c.id, imports.c.rows).where(*own).order_by(imports.c.id.desc()).limit(1)
    ).one_or_none()
    return None if row is None else Import(*row)


def body_of(connection: Connection, number: int) -> bytes | None:
    """Return an imported learner; None: it was deleted."""
    found = connection.scalar(select(imports.c.body).where(imports.c.id == number))
    return None if found is None else bytes(found)


def end(connection: Connection, application_id: int) -> None:
    """Let learning go on from no import. It is kept as long as a training refers to it: see `delete_unused`."""
    own = (imports.c.application_id == application_id, imports.c.ended_at.is_(None))
    connection.execute(update(imports).where(*own).values(ended_at=time.time()))


def delete_unused(connection: Connection, application_id: int) -> None:
    """Delete ended imports from which nothing can be learned again."""
    used = select(func.coalesce(trainings.c.import_id, 0)).where(trainings.c.application_id == application_id)
    connection.execute(
        delete(imports).where(
            imports.c.application_id == application_id, imports.c.ended_at.is_not(None), imports.c.id.not_in(used)
        )
    )
