"""Data of the dashboard: from sums per minute, model versions and the last rows, never from all rows.

**When a minute counts.** Decisions with a reward have their outcome at once; those without a reward have it when the
wait time is over. So a minute with open decisions looks better than it is. Rewards are therefore summed over minutes
whose decisions all have an outcome, up to the first recent minute with open decisions. (An old minute with open
decisions is skipped: a clock was wrong, or the trainer did not run.)
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Connection, Row, func, select

from o2pl.evaluation.judgement import Judgement
from o2pl.protocols import Floats
from o2pl.serving import gain_intervals
from o2pl.serving.applications import Application
from o2pl.serving.control_api import control_group
from o2pl.serving.schema import decisions, minutes, models, outcomes
from o2pl.serving.versions import model_versions, served_version

DELTA = 0.05
_GRACE = 600.0  # seconds after the wait time during which an open minute blocks later ones
_SHOWN = 12  # actions shown by name; the others are pooled
_COUNTED = 10_000  # limit of counting outcomes that are not learned yet
_NEWEST = 5  # versions of the model
_AGES = (600, 3600, 6 * 3600, 86400, 7 * 86400)  # seconds
_OF_MODEL = [models.c[name] for name in ("version", "created_at", "rows", "withdrawn")]
_RECENT = 1_000  # number of recent decisions for the agreement in apprentice mode

_numbers = msgspec.json.Decoder(list[float]).decode
_counts = msgspec.json.Decoder(dict[str, int]).decode


@dataclass(frozen=True)
class Span:
    """A time span, and the minutes per point."""

    minutes: int
    width: int


SPANS = {"hour": Span(60, 1), "day": Span(1440, 10), "week": Span(10_080, 60), "month": Span(43_200, 360)}


def summarise(connection: Connection, application: Application, span: str, now: float | None = None) -> dict[str, Any]:
    """Return the charts and numbers of one application."""
    now = time.time() if now is None else now
    asked = SPANS[span]
    first = int(now // 60) - asked.minutes + 1
    rows = connection.execute(
        select(minutes)
        .where(minutes.c.application_id == application.id, minutes.c.minute >= first)
        .order_by(minutes.c.minute)
    ).all()
    settings = application.settings
    kept = settled(rows, now, settings.reward_wait_time.total_seconds())
    points, total = _rewards(kept, asked.width, settings.reward_range)
    return {
        "application": {
            "name": application.name,
            "kind": application.kind.value,
            "mode": settings.learning_mode.value,
            "rewardRange": list(settings.reward_range),
            "rewardWait": settings.reward_wait_time.total_seconds(),
        },
        "now": now,
        "span": span,
        "width": asked.width,
        "rewards": points,
        "total": total,
        "traffic": _traffic(rows, asked.width),
        "actions": _actions(rows),
        "overlap": _overlap(kept, asked.width),
        "state": state(connection, application, rows, now),
        "models": versions(connection, application, now),
        "control": control_group(connection, application, now),
    }


def settled(rows: Sequence[Row[Any]], now: float, wait: float) -> list[Row[Any]]:
    """Return the minutes whose outcomes are all known, without a bias towards early (high) rewards."""
    young = now - wait - _GRACE
    waits = [row.minute for row in rows if row.outcomes < row.decisions]
    edge = min((minute for minute in waits if minute * 60 > young), default=math.inf)
    return [row for row in rows if row.outcomes >= row.decisions and row.minute < edge]


def _bins(rows: Sequence[Row[Any]], width: int) -> dict[int, list[Row[Any]]]:
    """Group minutes into bins, keyed by first minute, in order."""
    found: dict[int, list[Row[Any]]] = {}
    for row in rows:
        found.setdefault(row.minute - row.minute % width, []).append(row)
    return found


# -- rewards


def _rewards(
    rows: Sequence[Row[Any]], width: int, reward_range: tuple[float, float]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return for each point its mean reward, and the averages since the start with their intervals."""
    sums, count, reward = gain_intervals.nothing(), 0, 0.0
    weighted: dict[str, Floats] = {name: np.zeros(4) for name in gain_intervals.OTHERS}
    points: list[dict[str, Any]] = []
    latest: dict[str, Any] = {}
    for start, parts in _bins(rows, width).items():
        here, earned = sum(row.outcomes for row in parts), sum(row.reward for row in parts)
        if not here:
            continue
        count, reward = count + here, reward + earned
        sums += gain_intervals.total([row.standing for row in parts])
        for name in gain_intervals.OTHERS:
            weighted[name] = weighted[name] + _weights(parts, name)
        found = gain_intervals.intervals(sums, reward_range, DELTA)
        means = {"service": reward / count, **_means(weighted)}
        latest = {
            name: [_between(means.get(name), interval), interval.low, interval.high]
            for name, interval in found.items()
            if not name.startswith("gain")
        }
        points.append({"at": start * 60, "rows": here, "mean": earned / here, **latest})
    gains = {}
    for other in gain_intervals.OTHERS if points else ():
        gap = latest["service"][0] - means[other] if other in means else None
        if (judged := gain_intervals.judged("the service", other, found, DELTA, gap)) is not None:
            gains[other] = _told(judged)
    return points, {"rows": count, "reward": latest.get("service"), "gains": gains}


def _told(judged: Judgement) -> dict[str, Any]:
    """Return a judgement for the page, which forms no verdict of its own."""
    numbers = {"value": judged.estimate, "low": judged.low, "high": judged.high}
    return {**numbers, "verdict": judged.verdict, "sign": judged.sign, "says": str(judged)}


def _weights(rows: Sequence[Row[Any]], name: str) -> Floats:
    """Return Σ w, Σ w r, Σ w², Σ w² r² of another policy, [4]."""
    return np.asarray(np.sum([_numbers(getattr(row, name)) for row in rows], axis=0))


def _means(weighted: dict[str, Floats]) -> dict[str, float]:
    """Return Σ w r / Σ w, where weights are positive."""
    return {name: float(sums[1] / sums[0]) for name, sums in weighted.items() if sums[0] > 0}


def _between(value: float | None, interval: gain_intervals.Interval) -> float:
    """Clip an estimate to its interval: outside of it, it would look like an error."""
    if value is None:
        return (interval.low + interval.high) / 2
    return min(max(value, interval.low), interval.high)


# -- traffic, actions, overlap


def _traffic(rows: Sequence[Row[Any]], width: int) -> list[dict[str, Any]]:
    """Return decisions per minute, and those with an outcome (by a reward, by default)."""
    return [
        {
            "at": start * 60,
            "decisions": sum(row.decisions for row in parts) / width,
            "rewarded": sum(row.outcomes - row.defaults for row in parts) / width,
            "defaults": sum(row.defaults for row in parts) / width,
        }
        for start, parts in _bins(rows, width).items()
    ]


def _actions(rows: Sequence[Row[Any]]) -> dict[str, Any]:
    """Return how often each action was chosen: in the whole span, and in its last fifth."""
    counts: Counter[str] = Counter()
    late: Counter[str] = Counter()
    turn = rows[-1].minute - (rows[-1].minute - rows[0].minute) // 5 if rows else 0
    for row in rows:
        here = _counts(row.actions)
        counts.update(here)
        if row.minute >= turn:
            late.update(here)
    total, recent = sum(row.decisions for row in rows), sum(row.decisions for row in rows if row.minute >= turn)
    shown = counts.most_common(_SHOWN)
    listed = [
        {"id": name, "count": n, "share": n / max(total, 1), "late": late[name] / max(recent, 1)} for name, n in shown
    ]
    return {"different": len(counts), "listed": listed, "others": max(total - sum(n for _, n in shown), 0)}


def _overlap(rows: Sequence[Row[Any]], width: int) -> dict[str, Any]:
    """Return the effective sample size (Σ w)² / Σ w² for evaluating another policy, and the mean weight (ideally 1)."""
    found: dict[str, Any] = {}
    for name in gain_intervals.OTHERS:
        total, points, n = np.zeros(4), [], 0
        for start, parts in _bins(rows, width).items():
            here = _weights(parts, name)
            count = sum(row.outcomes for row in parts)
            total, n = total + here, n + count
            if here[2] > 0:
                points.append({"at": start * 60, "share": min(float(here[0] ** 2 / here[2]) / count, 1.0)})
        if total[2] > 0:
            effective = float(total[0] ** 2 / total[2])
            found[name] = {"rows": n, "effective": effective, "weight": float(total[0] / n), "points": points}
    return found


# -- models and status


def versions(connection: Connection, application: Application, now: float) -> dict[str, Any]:
    """Return the newest versions, the served one, and some older ones for rollbacks."""
    served = served_version(connection, application.id)
    own = models.c.application_id == application.id
    found = {row.version: row for row in model_versions(connection, application.id, _NEWEST)}
    for older in (models.c.version == served, *(models.c.created_at <= now - age for age in _AGES)):
        row = connection.execute(
            select(*_OF_MODEL).where(own, older).order_by(models.c.version.desc()).limit(1)
        ).one_or_none()
        if row is not None:
            found[row.version] = row
    listed = [
        {"version": row.version, "at": row.created_at, "rows": row.rows, "withdrawn": row.withdrawn}
        for _, row in sorted(found.items(), reverse=True)
    ]
    return {"served": served, "pinned": application.pinned, "listed": listed}


def state(connection: Connection, application: Application, rows: Sequence[Row[Any]], now: float) -> dict[str, Any]:
    """Return how up to date the served model is."""
    served = served_version(connection, application.id)
    model = connection.execute(
        select(models.c.created_at, models.c.rows, models.c.outcome_id).where(
            models.c.application_id == application.id, models.c.version == served
        )
    ).one_or_none()
    learned = 0 if model is None else int(model.outcome_id)
    behind = (
        select(outcomes.c.id)
        .where(outcomes.c.application_id == application.id, outcomes.c.id > learned)
        .limit(_COUNTED)
    )
    age = None
    if learned:
        decided = connection.scalar(
            select(decisions.c.decided_at)
            .join(outcomes, outcomes.c.decision_id == decisions.c.id)
            .where(outcomes.c.id == learned)
        )
        age = None if decided is None else now - decided
    return {
        "agreement": _agreement(connection, application.id),
        "version": served,
        "published": None if model is None else now - model.created_at,
        "learned": 0 if model is None else model.rows,
        "newestLearned": age,
        "behind": connection.scalar(select(func.count()).select_from(behind.limit(_COUNTED).subquery())) or 0,
        "decisions": sum(row.decisions for row in rows),
        "waiting": sum(max(row.decisions - row.outcomes, 0) for row in rows),
    }


def _agreement(connection: Connection, application_id: int) -> dict[str, Any] | None:
    """Apprentice mode: return how many recent decisions the policy would have made like the application."""
    newest = (
        select(decisions.c.preferred, decisions.c.action, decisions.c.model_version)
        .where(decisions.c.application_id == application_id, decisions.c.experiment.is_(None))
        .order_by(decisions.c.id.desc())
        .limit(_RECENT)
    )
    rows = [(a, b) for a, b, version in connection.execute(newest) if a is not None and version]
    return {"rows": len(rows), "share": sum(a == b for a, b in rows) / len(rows)} if rows else None


# -- events


def recent_events(connection: Connection, application: Application, limit: int = 15) -> list[dict[str, Any]]:
    """Return the newest decisions."""
    own = decisions.c.application_id == application.id
    rows = connection.execute(_event_columns().where(own).order_by(decisions.c.id.desc()).limit(limit))
    return [event_values(row, application) for row in rows]


def _event_columns() -> Any:
    own = [column for column in decisions.columns if column.name not in ("context", "probabilities")]
    return select(*own, outcomes.c.reward, outcomes.c.by_default).outerjoin(
        outcomes, outcomes.c.decision_id == decisions.c.id
    )


def event_values(row: Row[Any], application: Application) -> dict[str, Any]:
    """Return one decision as a row of the dashboard."""
    names = action_names(row.actions, application)
    return {
        "id": row.event_id,
        "slot": row.slot,
        "at": row.decided_at,
        "action": row.value if row.action is None else _named(names, row.action),
        "of": len(names) or None,
        "propensity": row.propensity,
        "version": row.model_version,
        "reward": row.reward,
        "byDefault": bool(row.by_default),
        "deferred": bool(row.deferred),
        "baseline": None if row.baseline is None else _named(names, row.baseline),
    }


def action_names(actions: bytes | None, application: Application) -> list[str]:
    return list(application.settings.actions) if actions is None else [str(name) for name in json.loads(actions)]


def _named(names: list[str], place: int) -> str:
    return names[place] if 0 <= place < len(names) else str(place)
