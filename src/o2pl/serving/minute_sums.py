"""Sums per minute for the dashboard, updated with new rows; each row is counted once.

The cursor is saved in the transaction that writes the sums.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Connection, select, update

from o2pl.protocols import Floats
from o2pl.serving import gain_intervals, row_reads
from o2pl.serving.applications import Application
from o2pl.serving.erasure import recounted
from o2pl.serving.schema import activations, decisions, minutes, models, outcomes
from o2pl.serving.settings import Kind
from o2pl.serving.store import Store

_MOST = 5000  # rows per transaction
_parsed = msgspec.json.Decoder(list[str]).decode
_ACTIONS = 50  # actions per minute that are counted by name
_COLUMNS = [
    decisions.c[name]
    for name in ("id", "event_id", "decided_at", "actions", "action", "value", "propensity", "model_version",
                 "deferred", "baseline", "preferred")
]  # fmt: skip
_WITH_OUTCOMES = select(*_COLUMNS, outcomes.c.id.label("outcome_id"), outcomes.c.reward, outcomes.c.by_default).join(
    outcomes, decisions.c.id == outcomes.c.decision_id
)


class Counted(msgspec.Struct):
    """Ids of the last rows read."""

    decision: int = 0
    activation: int = 0
    outcome: int = 0


class _Sums:
    """Sums of one minute."""

    def __init__(self, row: Any = None) -> None:
        self.decisions = row.decisions if row else 0
        self.outcomes = row.outcomes if row else 0
        self.defaults = row.defaults if row else 0
        self.reward = row.reward if row else 0.0
        self.reward_squared = row.reward_squared if row else 0.0
        self.others = {
            name: np.array(json.loads(getattr(row, name)) if row else [0.0] * 4) for name in gain_intervals.OTHERS
        }
        self.standing = gain_intervals.unpack(row.standing) if row else gain_intervals.nothing()
        self.actions = Counter(json.loads(row.actions) if row else {})

    def plus(self, other: _Sums | None) -> _Sums:
        """Add the sums of other rows in place."""
        if other is not None:
            self.decisions += other.decisions
            self.outcomes += other.outcomes
            self.defaults += other.defaults
            self.reward += other.reward
            self.reward_squared += other.reward_squared
            self.others = {name: sums + other.others[name] for name, sums in self.others.items()}
            self.standing = self.standing + other.standing
            self.actions = self.actions + other.actions
        return self

    def row(self, application_id: int, minute: int) -> dict[str, Any]:
        return {
            "application_id": application_id, "minute": minute, "decisions": self.decisions,
            "outcomes": self.outcomes, "defaults": self.defaults, "reward": self.reward,
            "reward_squared": self.reward_squared, "standing": gain_intervals.pack(self.standing),
            "actions": json.dumps(dict(self.actions.most_common(_ACTIONS))),
            **{name: json.dumps(sums.tolist()) for name, sums in self.others.items()},
        }  # fmt: skip


def count_minutes(store: Store, application: Application) -> None:
    """Count all new rows."""
    while True:
        with store.reading() as connection:  # does not block servers
            at = _counted(connection, application.id)
            sums, after, new, full = _some(connection, application, at)
        if after == at:
            return
        with store.writing() as connection:
            if _counted(connection, application.id) == at:
                known = _known(connection, application.id, sums)
                added = [own.plus(known.get(minute)).row(application.id, minute) for minute, own in sums.items()]
                row_reads.put_minutes(connection, added)
                _note_versions(connection, application.id, new)
                row_reads.put_note(connection, f"minutes:{application.id}", msgspec.json.encode(after).decode())
        if not full:
            return


def _some(
    connection: Connection, application: Application, at: Counted
) -> tuple[dict[int, _Sums], Counted, Sequence[Any], bool]:
    """Return the sums of new rows, the new cursor, their decisions, and whether there are more rows."""
    own = decisions.c.application_id == application.id
    new = connection.execute(
        select(*_COLUMNS).where(own, decisions.c.id > at.decision).order_by(decisions.c.id).limit(_MOST)
    ).all()
    active = row_reads.rows_after(connection, activations, application.id, at.activation, _MOST)
    came = connection.execute(
        _WITH_OUTCOMES.where(outcomes.c.application_id == application.id, outcomes.c.id > at.outcome)
        .order_by(outcomes.c.id)
        .limit(_MOST)
    ).all()
    last, last_active = new[-1].id if new else at.decision, active[-1].id if active else at.activation
    counting = [
        *_counting(connection, application.id, new, last_active),
        *_activated(connection, application.id, active, at.decision),
    ]
    sums: dict[int, _Sums] = {int(row.decided_at // 60): _Sums() for row in (*counting, *came)}
    _add_decisions(sums, application, counting)
    of_minute: dict[int, list[Any]] = {}
    for row in came:
        of_minute.setdefault(int(row.decided_at // 60), []).append(row)
    for minute, rows in of_minute.items():
        _add_outcomes(sums[minute], application, rows)
    after = Counted(last, last_active, came[-1].outcome_id if came else at.outcome)
    return sums, after, new, max(len(new), len(active), len(came)) == _MOST


def recount_minutes(store: Store, application: Application, wanted: Sequence[int]) -> None:
    """Recompute the sums of these minutes from the remaining counted rows, after events were erased."""
    for minute in wanted:
        with store.writing() as connection:
            at = _counted(connection, application.id)
            here = (
                decisions.c.application_id == application.id, decisions.c.decided_at >= 60 * minute,
                decisions.c.decided_at < 60 * (minute + 1),
            )  # fmt: skip
            found = connection.execute(select(*_COLUMNS).where(*here, decisions.c.id <= at.decision)).all()
            came = connection.execute(_WITH_OUTCOMES.where(*here, outcomes.c.id <= at.outcome)).all()
            sums = _Sums()
            _add_decisions({minute: sums}, application, _counting(connection, application.id, found, at.activation))
            _add_outcomes(sums, application, came)
            row_reads.put_minutes(connection, [sums.row(application.id, minute)])
            recounted(connection, application.id, [minute])


def _counted(connection: Connection, application_id: int) -> Counted:
    said = row_reads.note(connection, f"minutes:{application_id}")
    return msgspec.json.decode(said, type=Counted) if said else Counted()


def _add_decisions(sums: dict[int, _Sums], application: Application, rows: Sequence[Any]) -> None:
    for row in rows:
        here = sums[int(row.decided_at // 60)]
        here.decisions += 1
        if row.action is not None:
            here.actions[_names(application, row.actions)[row.action]] += 1


def _counting(connection: Connection, application_id: int, new: Sequence[Any], last_active: int) -> list[Any]:
    """Return the new decisions that count: not deferred, or activated by an activation read so far."""
    deferred = [row.event_id for row in new if row.deferred]
    if not deferred:
        return list(new)
    query = select(activations.c.event_id).where(
        activations.c.application_id == application_id, activations.c.event_id.in_(deferred),
        activations.c.id <= last_active,
    )  # fmt: skip
    active = set(connection.scalars(query))
    return [row for row in new if not row.deferred or row.event_id in active]


def _activated(connection: Connection, application_id: int, active: Sequence[Any], upto: int) -> list[Any]:
    """Return deferred decisions up to `upto` that are activated only now."""
    events = [row.event_id for row in active]
    if not events:
        return []
    query = select(*_COLUMNS).where(
        decisions.c.application_id == application_id, decisions.c.event_id.in_(events), decisions.c.deferred.is_(True),
        decisions.c.id <= upto,
    )  # fmt: skip
    return list(connection.execute(query).all())


def _known(connection: Connection, application_id: int, wanted: Iterable[int]) -> dict[int, _Sums]:
    query = select(minutes).where(minutes.c.application_id == application_id, minutes.c.minute.in_(list(wanted)))
    return {row.minute: _Sums(row) for row in connection.execute(query)}


def _names(application: Application, actions: bytes | None) -> list[str]:
    return list(application.settings.actions) if actions is None else _parsed(bytes(actions))


def _add_outcomes(sums: _Sums, application: Application, rows: Sequence[Any]) -> None:
    if not rows:
        return
    rewards = np.array([row.reward for row in rows])
    sums.outcomes += len(rows)
    sums.defaults += sum(bool(row.by_default) for row in rows)
    sums.reward += float(rewards.sum())
    sums.reward_squared += float(rewards @ rewards)
    weights = weights_of(application, rows)
    for name, w in weights.items():
        known = ~np.isnan(w)
        own, r = w[known], rewards[known]
        sums.others[name] += [own.sum(), own @ r, own @ own, (own * r) @ (own * r)]
    sums.standing += gain_intervals.tally(
        rewards, application.settings.reward_range, weights["uniform"], weights["baseline"]
    )


def weights_of(application: Application, rows: Sequence[Any]) -> dict[str, Floats]:
    """Return the weights π(a|x)/p of the uniform policy and of the baseline; NaN if unknown.

    If the application chose, its choice was deterministic and has no information about other actions.
    """
    uniform, baseline = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for place, row in enumerate(rows):
        if row.baseline is not None:
            baseline[place] = (row.action == row.baseline) / row.propensity
        if row.preferred is not None:
            continue
        if application.kind is Kind.CONTINUOUS:
            low, high = application.settings.bounds or (0.0, 1.0)
            uniform[place] = 1 / (high - low) / row.propensity
        else:
            uniform[place] = 1 / len(_names(application, row.actions)) / row.propensity
    return {"uniform": uniform, "baseline": baseline}


def _note_versions(connection: Connection, application_id: int, new: Sequence[Any]) -> None:
    """Store the last decision of each version: a version is kept as long as this decision exists."""
    last = {row.model_version: row.id for row in new if row.model_version}
    for version, number in last.items():
        connection.execute(
            update(models)
            .where(models.c.application_id == application_id, models.c.version == version)
            .values(last_decision=number)
        )
