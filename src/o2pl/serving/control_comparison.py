"""Compares the service with its control group, on rewards and on every metric, and acts when it is worse.

Decisions are counted when the rewards of a whole block of time are known: a block is a period of the keys, or a minute
if there are none. In it, a unit is one row: the mean of its rewards. Its rows come in the order of first decisions.
The cursor is stored with the sums.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Connection, func, select

from o2pl.protocols import Floats
from o2pl.serving import applications as known_applications
from o2pl.serving import gain_sequence, row_reads, versions
from o2pl.serving.applications import Application
from o2pl.serving.control_assignment import experiment_of
from o2pl.serving.gain_sequence import Contrast
from o2pl.serving.reward_join import GRACE, Joined
from o2pl.serving.schema import decisions, outcomes
from o2pl.serving.settings import Aggregation, Guardrail, LearningMode, MetricSettings, Settings
from o2pl.serving.store import Store

DELTA = 0.05  # probability that any of the intervals of an application ever misses
REWARD = "reward"
_MINUTE, _TOGETHER = 60.0, 3600.0  # seconds
_MOST = 5000  # decisions per read
_POINTS = 200  # of the chart; every second one is dropped beyond
_LOGGER = logging.getLogger("o2pl.serving")


class Point(msgspec.Struct):
    """What was known at a time: estimate and interval by question."""

    at: float
    gains: dict[str, tuple[float, float, float]]


class RunningComparison(msgspec.Struct):
    """State of a comparison: note of an application."""

    experiment: str
    settings: Settings  # by which it is compared; when it has ended, the last ones
    since: float
    upto: float  # decisions before it are counted
    decisions: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    sums: dict[str, Contrast] = msgspec.field(default_factory=dict)
    points: list[Point] = msgspec.field(default_factory=list)
    alerts: dict[str, str] = msgspec.field(default_factory=dict)  # sentence by question
    withdrawn: str | None = None  # why the control group's policy decides for all


def note_of(application_id: int) -> str:
    return f"control:{application_id}"


def compared(connection: Connection, application: Application) -> RunningComparison | None:
    """Return the newest comparison of an application, which may have ended; None: there was none."""
    said = row_reads.note(connection, note_of(application.id))
    return msgspec.json.decode(said, type=RunningComparison) if said else None


def questions(settings: Settings) -> dict[str, MetricSettings]:
    """Return what is compared, as metrics by name: the reward is the first one."""
    reward = MetricSettings(
        range=settings.reward_range, default=settings.default_reward, guardrail=settings.reward_guardrail
    )  # fmt: skip
    return {REWARD: reward, **settings.metrics}


def compare(
    store: Store, application: Application, now: float, alive: Callable[[], None] = lambda: None
) -> RunningComparison | None:  # fmt: skip
    """Count what is known by now, and act on the guardrails. None: nothing is compared."""
    experiment, settings = experiment_of(application.settings, application.kind), application.settings
    if experiment is None:
        return None
    with store.reading() as connection:
        state = compared(connection, application)
    if state is None or state.experiment != experiment:
        if state is not None and state.sums:
            said = "; ".join(f"{one.name}: {one.says}" for one in findings(state))
            _LOGGER.info("a comparison ended: %s", said, extra={"application": application.name})
        state = begun(experiment, settings, _first_decision(store, application, experiment) or now)
        _keep(store, application, state)
    state.settings, block = settings, block_of(settings)
    while (end := _ready(store, application, state, block, now)) is not None:
        _count(store, application, state, end, alive)
        _keep(store, application, state)
    _guard(store, application, state)
    return state


def _first_decision(store: Store, application: Application, experiment: str) -> float | None:
    """Return when the comparison's first decision was made; it may be known only later that there is one."""
    here = decisions.c.application_id == application.id, decisions.c.experiment == experiment
    with store.reading() as connection:
        found = connection.scalar(select(func.min(decisions.c.decided_at)).where(*here))
    return None if found is None else float(found)


def block_of(settings: Settings) -> float:
    return settings.control_period.total_seconds() if settings.control_key else _MINUTE


def begun(experiment: str, settings: Settings, now: float) -> RunningComparison:
    """Return the state of a comparison that has counted nothing yet."""
    start = now // block_of(settings) * block_of(settings)
    return RunningComparison(experiment, settings, start, start)


def _keep(store: Store, application: Application, state: RunningComparison) -> None:
    store.put_note(note_of(application.id), msgspec.json.encode(state).decode())


def _ready(store: Store, application: Application, state: RunningComparison, block: float, now: float) -> float | None:
    """Return the end of the next block with decisions, if all their rewards are known; None: nothing is to be done."""
    last = now - application.settings.reward_wait_time.total_seconds() - 2 * GRACE
    here = (decisions.c.application_id == application.id, decisions.c.decided_at >= state.upto)
    with store.reading() as connection:
        said = row_reads.note(connection, f"joined:{application.id}")
        joined = msgspec.json.decode(said, type=Joined).decision if said else 0
        first = connection.scalar(select(func.min(decisions.c.decided_at)).where(*here))
        if first is None:
            return None
        end = float((math.floor(first / block) + 1) * block)
        if not application.settings.control_key:  # minutes may be counted together
            end = max(end, min(last // block * block, end + _TOGETHER))
        newest = select(func.max(decisions.c.id)).where(*here, decisions.c.decided_at < end)
        return end if end <= last and int(connection.scalar(newest) or 0) <= joined else None


class _Unit:
    """Sums of one unit in a block."""

    def __init__(self, control: bool, names: Sequence[str]) -> None:
        self.control, self.rows, self.sums = control, 0, dict.fromkeys(names, 0.0)


def _count(
    store: Store, application: Application, state: RunningComparison, end: float, alive: Callable[[], None]
) -> None:  # fmt: skip
    """Add the units of one block to the sums."""
    settings, asked = application.settings, questions(application.settings)
    units: dict[str, _Unit] = {}
    for rows, came in _decided(store, application, state, end):
        alive()
        for row in rows:
            unit = units.setdefault(row.unit, _Unit(bool(row.control), list(asked)))
            unit.rows += 1
            unit.sums[REWARD] += row.reward
            for name, value in _metrics(settings, row, came.get((row.event_id, row.slot), ())).items():
                unit.sums[name] += value
    found = list(units.values())
    state.upto = end
    if not found:
        return
    control = np.array([unit.control for unit in found])
    counts = np.array([unit.rows for unit in found])
    state.decisions = [
        state.decisions[0] + int(counts[~control].sum()),
        state.decisions[1] + int(counts[control].sum()),
    ]
    for name, metric in asked.items():
        means: Floats = np.array([unit.sums[name] for unit in found]) / counts
        before = state.sums.get(name) or Contrast()
        state.sums[name] = gain_sequence.added(before, means, control, settings.control_share, metric.range)
    gains = {name: (one.estimate, one.low, one.high) for name, one in _gains(state).items()}
    state.points.append(Point(end, gains))
    if len(state.points) > _POINTS:
        state.points = [*state.points[:-1:2], state.points[-1]]


def _decided(
    store: Store, application: Application, state: RunningComparison, end: float
) -> Iterator[tuple[Sequence[Any], dict[tuple[str, str], list[Any]]]]:
    """Yield decisions with their outcomes, and all that came for their events."""
    after = 0
    columns = [decisions.c[name] for name in ("id", "event_id", "slot", "decided_at", "unit", "control")]
    query = (
        select(*columns, outcomes.c.reward)
        .join(outcomes, outcomes.c.decision_id == decisions.c.id)
        .where(decisions.c.application_id == application.id, decisions.c.experiment == state.experiment)
        .where(decisions.c.decided_at >= state.upto, decisions.c.decided_at < end)
    )
    while True:
        with store.reading() as connection:
            rows = connection.execute(
                query.where(decisions.c.id > after).order_by(decisions.c.id).limit(_MOST)
            ).all()  # fmt: skip
            came: dict[tuple[str, str], list[Any]] = {}
            if application.settings.metrics and rows:
                for row in row_reads.rewards_of(connection, application.id, sorted({row.event_id for row in rows})):
                    came.setdefault((row.event_id, row.slot), []).append(row)
        if not rows:
            return
        after = rows[-1].id
        yield rows, came


def _metrics(settings: Settings, row: Any, came: Sequence[Any]) -> dict[str, float]:
    """Return the metrics of a decision, aggregated as its rewards are."""
    wait = settings.reward_wait_time.total_seconds()
    sent = [
        msgspec.json.decode(one.metrics, type=dict[str, float])
        for one in came
        if one.metrics and one.received_at - row.decided_at <= wait
    ]
    found = {}
    for name, metric in settings.metrics.items():
        values = [one[name] for one in sent if name in one]
        if settings.reward_aggregation is Aggregation.EARLIEST:
            values = values[:1]
        low, high = metric.range
        found[name] = min(max(sum(values), low), high) if values else metric.default
    return found


# -- what is known


def _delta(settings: Settings) -> float:
    """Return the level of each interval: all hold jointly."""
    return DELTA / len(questions(settings))


def _jointly(asked: dict[str, MetricSettings]) -> str:
    return ", jointly for the reward and all metrics" if len(asked) > 1 else ""


def _gains(state: RunningComparison) -> dict[str, gain_sequence.Gain]:
    settings = state.settings
    return {
        name: gain_sequence.gain(state.sums[name], settings.control_share, metric.range, _delta(settings))
        for name, metric in questions(settings).items()
        if name in state.sums
    }


class Finding(msgspec.Struct, rename="camel"):
    """The reward, or a metric: service minus control, with an interval that holds at any time."""

    name: str
    gain: float
    low: float
    high: float
    confidence: float  # of all intervals jointly
    service: float | None  # mean of its units
    control: float | None
    units: list[int]  # of the service, of the control group
    verdict: str
    sign: int  # 1: the service is better, -1: worse, 0: neither is shown
    says: str
    lower_is_better: bool
    guardrail: str
    tolerance: float
    alert: str | None  # what the guardrail has said


def findings(state: RunningComparison) -> list[Finding]:
    """Return what is known of the reward and of each metric."""
    found, asked = [], questions(state.settings)
    for name, gain in _gains(state).items():
        metric, units = asked[name], state.sums[name].units
        judged = gain_sequence.judged(gain, sum(units), DELTA, metric.lower_is_better, condition=_jointly(asked))
        found.append(Finding(
            name, gain.estimate, gain.low, gain.high, 1 - DELTA, _number(gain.means[0]), _number(gain.means[1]), units,
            judged.verdict, judged.sign, str(judged), metric.lower_is_better, metric.guardrail.value, metric.tolerance,
            state.alerts.get(name),
        ))  # fmt: skip
    return found


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


# -- guardrails


def _guard(store: Store, application: Application, state: RunningComparison) -> None:
    """Alert or withdraw where the service is worse by more than what is tolerated. What was said stays said."""
    settings, fresh = application.settings, {}
    for name, gain in _gains(state).items():
        metric = questions(settings)[name]
        if name in state.alerts or metric.guardrail is Guardrail.NONE:
            continue
        units = sum(state.sums[name].units)
        lower, jointly = metric.lower_is_better, _jointly(questions(settings))
        judged = gain_sequence.judged(gain, units, DELTA, lower, metric.tolerance, jointly)
        if judged.sign < 0:
            fresh[name] = f"{name}: {judged}"
    if not fresh:
        return
    state.alerts |= fresh
    for why in fresh.values():
        _LOGGER.error("guardrail: %s", why, extra={"application": application.name, "reason": why})
    withdrawing = [why for name, why in fresh.items() if questions(settings)[name].guardrail is Guardrail.WITHDRAW]
    with store.writing() as connection:
        if withdrawing:
            state.withdrawn = withdrawing[0]
            _withdraw(connection, application)
        row_reads.put_note(connection, note_of(application.id), msgspec.json.encode(state).decode())


def _withdraw(connection: Connection, application: Application) -> None:
    """Let what decides for the control group decide for all."""
    settings, version = application.settings, application.settings.control_version
    if version is None:
        changed = msgspec.structs.replace(settings, learning_mode=LearningMode.APPRENTICE)
    else:
        versions.pin(connection, application.id, version)
        changed = msgspec.structs.replace(settings, control_share=0.0)
    known_applications.put_settings(connection, application.id, changed)
