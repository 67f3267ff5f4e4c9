"""Prometheus metrics of one server process."""

from __future__ import annotations

from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from o2pl.serving.models import Served
from o2pl.serving.writer import Writer

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Metrics with cached labels: looking them up costs more than counting."""

    def __init__(self, writer: Writer) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        self._calls = Counter("o2pl_calls", "Answered calls", ["route", "status"], **own)
        self._seconds = Histogram("o2pl_call_seconds", "Time to answer", ["route"], buckets=_SECONDS, **own)
        self._decisions = Counter("o2pl_decisions", "Decisions on disk", ["application"], **own)
        self._rewards = Counter("o2pl_rewards", "Rewards on disk", ["application"], **own)
        self._version = Gauge("o2pl_model_version", "Served model version", ["application"], **own)
        self._failed = Gauge(
            "o2pl_model_failed", "1: another version than the wanted one is served", ["application"], **own
        )
        waiting = Gauge("o2pl_entries_waiting", "Entries waiting to be written to disk", **own)
        waiting.set_function(lambda: writer.waiting)
        self._call = cache(lambda route, status: self._calls.labels(route, str(status)))
        self._time = cache(lambda route: self._seconds.labels(route))
        self._decision = cache(lambda name: self._decisions.labels(name))
        self._reward = cache(lambda name: self._rewards.labels(name))

    def answered(self, route: str, status: int, seconds: float) -> None:
        self._call(route, status).inc()
        self._time(route).observe(seconds)

    def decided(self, served: Served, count: int) -> None:
        self._decision(served.application.name).inc(count)

    def rewarded(self, served: Served, count: int) -> None:
        self._reward(served.application.name).inc(count)

    def model_changed(self, served: Served) -> None:
        self._version.labels(served.application.name).set(served.acting.version)
        self._failed.labels(served.application.name).set(served.failed is not None)

    def text(self) -> bytes:
        return generate_latest(self.registry)
