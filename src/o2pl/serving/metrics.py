"""Prometheus metrics of one server process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest

from o2pl.serving.health import LearningWatch
from o2pl.serving.models import Served
from o2pl.serving.writer import Writer

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class ServiceMetrics:
    """Metrics with cached labels: looking them up costs more than counting."""

    def __init__(self, writer: Writer, watch: LearningWatch) -> None:
        self._watch = watch
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        self._calls = Counter("o2pl_calls", "Answered calls", ["route", "status"], **own)
        self._seconds = Histogram("o2pl_call_seconds", "Time to answer", ["route"], buckets=_SECONDS, **own)
        self._decisions = Counter("o2pl_decisions", "Decisions on disk", ["application"], **own)
        self._rewards = Counter("o2pl_rewards", "Rewards on disk", ["application"], **own)
        self._refused = Counter("o2pl_keys_refused", "Calls with a missing, unknown or expired key", **own)
        self._version = Gauge("o2pl_model_version", "Served model version", ["application"], **own)
        self._failed = Gauge(
            "o2pl_model_failed", "1: another version than the wanted one is served", ["application"], **own
        )
        waiting = Gauge("o2pl_entries_waiting", "Entries waiting to be written to disk", **own)
        waiting.set_function(lambda: writer.waiting)
        self._writable = Gauge("o2pl_store_writable", "0: the database is away, full or read-only", **own)
        self._trainer = Gauge("o2pl_trainer_alive", "1: a trainer runs on this database", **own)
        of_each = {"labelnames": ["application"], **own}
        self._behind = Gauge("o2pl_learning_lag_events", "Rewards that are not learned from yet", **of_each)
        self._late = Gauge("o2pl_learning_lag_seconds", "Age of the oldest reward that is not learned", **of_each)
        self._fails = Gauge("o2pl_learning_failed", "1: learning fails, and is tried again", **of_each)
        self._alerts = Gauge("o2pl_control_alerts", "Metrics whose guardrail has said something", **of_each)
        self._age = Gauge("o2pl_model_age_seconds", "Time since the served model was published", **of_each)
        self._call = cache(lambda route, status: self._calls.labels(route, str(status)))
        self._time = cache(lambda route: self._seconds.labels(route))
        self._decision = cache(lambda name: self._decisions.labels(name))
        self._reward = cache(lambda name: self._rewards.labels(name))

    def answered(self, route: str, status: int, seconds: float) -> None:
        self._call(route, status).inc()
        self._time(route).observe(seconds)

    def key_refused(self) -> None:
        self._refused.inc()

    def decided(self, served: Served, count: int) -> None:
        self._decision(served.application.name).inc(count)

    def rewarded(self, served: Served, count: int) -> None:
        self._reward(served.application.name).inc(count)

    def model_changed(self, served: Served) -> None:
        self._version.labels(served.application.name).set(served.acting.version)
        self._failed.labels(served.application.name).set(served.failed is not None)

    def text(self, application: str | None) -> bytes:
        """Return all metrics; with an application: without those of the others."""
        self._writable.set(self._watch.unavailable is None)
        self._trainer.set(self._watch.trainer)
        for state in self._watch.states:
            self._behind.labels(state.name).set(state.lag.events)
            self._late.labels(state.name).set(state.lag.seconds)
            self._fails.labels(state.name).set(state.failed)
            self._alerts.labels(state.name).set(state.alerts)
            if state.age is not None:
                self._age.labels(state.name).set(state.age)
        return generate_latest(self.registry if application is None else _Of(self.registry, application))


class _Of:
    """A registry without what belongs to other applications."""

    def __init__(self, registry: CollectorRegistry, application: str) -> None:
        self._registry, self._application = registry, application

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            own = Metric(metric.name, metric.documentation, metric.type)
            own.samples = [
                each
                for each in metric.samples
                if each.labels.get("application", self._application) == self._application
            ]
            yield own
