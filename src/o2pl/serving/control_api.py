"""`GET /control`: how the service compares with its control group. The dashboard shows the same."""

from __future__ import annotations

import time

import msgspec
from sqlalchemy import Connection

from o2pl.serving import control_comparison
from o2pl.serving.applications import Application
from o2pl.serving.control_assignment import experiment_of
from o2pl.serving.control_comparison import Finding
from o2pl.serving.problems import Problem, Reply, as_json
from o2pl.serving.service import Call, Route


class ControlGroup(msgspec.Struct, rename="camel"):
    """The service and its control group. Times are in seconds since 1970."""

    running: bool  # False: the last comparison, which has ended
    share: float
    key: str | None
    period: float | None  # seconds for which a key stays in its group; null: each event is assigned for itself
    version: int | None  # that decides for the control group; null: the application's own choice
    since: float
    upto: float  # decisions before it are counted
    decisions: list[int]  # of the service, of the control group
    withdrawn: str | None  # why a guardrail has ended it
    findings: list[Finding]
    points: list[control_comparison.Point]


def control_group(connection: Connection, application: Application, now: float) -> ControlGroup | None:
    """Return the comparison that runs, or the last one; None: there was none."""
    running = experiment_of(application.settings, application.kind)
    state = control_comparison.compared(connection, application)
    if running is not None and (state is None or state.experiment != running):
        state = control_comparison.begun(running, application.settings, now)
    if state is None:
        return None
    settings = state.settings
    return ControlGroup(
        running is not None, settings.control_share, settings.control_key,
        settings.control_period.total_seconds() if settings.control_key else None, settings.control_version,
        state.since, state.upto, state.decisions, state.withdrawn, control_comparison.findings(state), state.points,
    )  # fmt: skip


async def control(call: Call) -> Reply:
    store, application = call.service.store, call.served.application

    def found() -> ControlGroup | None:
        with store.reading() as connection:
            return control_group(connection, application, time.time())

    group = await call.service.blocking(found)
    if group is None:
        raise Problem(
            404, "ResourceNotFound", "control: found no control group; the setting controlShare begins one"
        )  # fmt: skip
    return as_json(200, group)


ROUTES = [
    Route(
        "GET", "/control", control, "ResourceNotFound", "What the service earns above its control group", "read"
    )._replace(answer=ControlGroup, tag="settings"),
]
