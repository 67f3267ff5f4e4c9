"""Joins rewards and activations to decisions: the outcome is the reward that a decision is learned with.

With the aggregation `earliest`, the first reward counts at once; `sum` counts when the wait time is over; without any
reward, the default reward counts then. A deferred event counts once it is activated. Rewards after the wait time are
stored but not learned from. The cursor is saved in the transaction that writes the outcomes, and each decision has only
one outcome: after a crash, the joiner continues where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from o2pl.serving import row_reads
from o2pl.serving.applications import Application
from o2pl.serving.database import OUTCOMES
from o2pl.serving.schema import activations, decisions, rewards
from o2pl.serving.settings import Aggregation, Settings
from o2pl.serving.store import Store

_MOST = 1000  # rows per transaction: with SQLite, servers wait for it
GRACE = 2.0  # seconds: a reward that arrived in time may reach the disk a little later


class Joined(msgspec.Struct):
    """Ids of the last rows read; the wait time of all decisions up to `decision` is over."""

    reward: int = 0
    activation: int = 0
    decision: int = 0


def outcome_of(
    decided_at: float, came: Sequence[tuple[float, float]], settings: Settings, now: float
) -> tuple[float, bool] | None:
    """Return the reward and whether it is the default one; None: not known yet.

    came: value and time of each reward, in order of arrival.
    """
    wait = settings.reward_wait_time.total_seconds()
    in_time = [value for value, received_at in came if received_at - decided_at <= wait]
    if settings.reward_aggregation is Aggregation.EARLIEST and in_time:
        return in_time[0], False
    if now - decided_at < wait + GRACE:
        return None
    if not in_time:
        return settings.default_reward, True
    low, high = settings.reward_range
    return min(max(sum(in_time), low), high), False


def join(store: Store, application: Application, now: float, waits: bool = True) -> int:
    """Write all outcomes known by now. Returns how many are new. waits: include decisions whose wait time is over."""
    new, name = 0, f"joined:{application.id}"
    while True:
        with store.reading() as connection:  # does not block servers
            said = row_reads.note(connection, name)
            at = msgspec.json.decode(said, type=Joined) if said else Joined()
            found, after, full = _some(connection, application, at, now, waits)
        if found or after != at:
            with store.writing(OUTCOMES) as connection:
                new += row_reads.add_outcomes(connection, found) if found else 0
                row_reads.put_note(connection, name, msgspec.json.encode(after).decode())
        if not full:
            return new


def _some(
    connection: Connection, application: Application, at: Joined, now: float, waits: bool
) -> tuple[list[dict[str, Any]], Joined, bool]:
    """Return the outcomes of new rows, the new cursor, and whether there are more rows."""
    settings = application.settings
    told = row_reads.rows_after(connection, rewards, application.id, at.reward, _MOST)
    active = row_reads.rows_after(connection, activations, application.id, at.activation, _MOST)
    touched = {row.id: row for row in _decisions_of(connection, application.id, [*told, *active])}
    over: Sequence[Any] = []
    decision = at.decision
    if waits:
        cutoff = now - settings.reward_wait_time.total_seconds() - GRACE
        over = row_reads.waited(connection, application.id, cutoff, at.decision, _MOST)
        touched |= {row.id: row for row in over}
        if len(over) < _MOST:
            decision = max(decision, _before_first_younger(connection, application.id, decision, cutoff))
    after = Joined(told[-1].id if told else at.reward, active[-1].id if active else at.activation, decision)
    full = max(len(told), len(active), len(over)) == _MOST
    return _outcomes(connection, application, touched, now), after, full


def _decisions_of(connection: Connection, application_id: int, rows: Iterable[Any]) -> Sequence[Any]:
    """Return the decisions (all slots) of the rows' events that count: not deferred, or activated."""
    events = sorted({row.event_id for row in rows})
    if not events:
        return []
    columns = [decisions.c.id, decisions.c.event_id, decisions.c.slot, decisions.c.decided_at, decisions.c.deferred]
    query = select(*columns).where(decisions.c.application_id == application_id, decisions.c.event_id.in_(events))
    found = connection.execute(query).all()
    deferred = [row.event_id for row in found if row.deferred]
    if not deferred:
        return found
    active = select(activations.c.event_id).where(
        activations.c.application_id == application_id, activations.c.event_id.in_(deferred)
    )
    activated = set(connection.scalars(active))
    return [row for row in found if not row.deferred or row.event_id in activated]


def _outcomes(
    connection: Connection, application: Application, touched: dict[int, Any], now: float
) -> list[dict[str, Any]]:
    """Return outcomes in the order of their rewards, then of their decisions."""
    came: dict[tuple[str, str], list[Any]] = {}
    for row in row_reads.rewards_of(connection, application.id, sorted({row.event_id for row in touched.values()})):
        came.setdefault((row.event_id, row.slot), []).append(row)
    known = []
    for row in touched.values():
        own = came.get((row.event_id, row.slot), [])
        outcome = outcome_of(row.decided_at, [(one.value, one.received_at) for one in own], application.settings, now)
        if outcome is not None:
            known.append((own[0].id if own else 2**62, row.id, *outcome))
    return [
        {"application_id": application.id, "decision_id": number, "reward": reward, "by_default": default,
         "joined_at": now}
        for _, number, reward, default in sorted(known)
    ]  # fmt: skip


def _before_first_younger(connection: Connection, application_id: int, after: int, cutoff: float) -> int:
    """Return the last decision before the first whose wait time is not over."""
    here = (decisions.c.application_id == application_id, decisions.c.id > after)
    younger = select(decisions.c.id).where(*here, decisions.c.decided_at > cutoff).order_by(decisions.c.id).limit(1)
    first = connection.scalar(younger)
    if first is not None:
        return int(first) - 1
    return int(connection.scalar(select(func.max(decisions.c.id)).where(*here)) or 0)
