"""The control group: which decisions are the application's own choice, or another version's, so that both are compared.

The unit of a decision is the key that the settings name (a feature of the context, or a header), or else the event. A
unit is in the control group by a hash of itself and the period, so it stays there for a period, on every server, and
nothing that was seen before says where the next one will be.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from o2pl.serving.deciding import Acting
from o2pl.serving.settings import Kind, LearningMode, Settings

if TYPE_CHECKING:
    from o2pl.serving.applications import Application
    from o2pl.serving.models import Served

HEADER = "header:"  # of a controlKey that names a header instead of a feature
Headers = Sequence[tuple[bytes, bytes]]
_parsed = msgspec.json.Decoder().decode


class Arm(NamedTuple):
    """By what a decision is made."""

    acting: Acting
    own: bool  # the application's own choice is returned
    at: float  # of the decision
    experiment: str | None = None  # None: nothing is compared
    unit: str | None = None
    control: bool | None = None


def experiment_of(settings: Settings, kind: Kind) -> str | None:
    """Return the name of what is compared; other settings have another name. None: nothing is."""
    if not settings.control_share or settings.learning_mode is not LearningMode.ONLINE:
        return None
    metrics = {name: (metric.range, metric.default) for name, metric in settings.metrics.items()}
    parts = (
        settings.control_share, settings.control_key, settings.control_period.total_seconds(), settings.control_version,
        settings.reward_range, kind, metrics,
    )  # fmt: skip
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:8]


def arm_of(served: Served, event_id: str, context: bytes, headers: Headers, at: float | None = None) -> Arm:
    """Return what decides for this event. context: a JSON object; at: None: now."""
    settings, at = served.application.settings, time.time() if at is None else at
    own = settings.learning_mode is not LearningMode.ONLINE
    if served.experiment is None:
        return Arm(served.acting, own, at)
    unit = _key_of(settings.control_key, context, headers) or event_id
    period = int(at // settings.control_period.total_seconds()) if settings.control_key else 0
    digest = hashlib.sha256(f"{_salt(served.application)}|{period}|{unit}".encode("utf-8", "surrogatepass")).digest()
    control = int.from_bytes(digest[:8]) < settings.control_share * 2**64
    acting = served.acting
    if control and served.control is not None:
        acting = served.control
    taught = control and settings.control_version is None
    return Arm(acting, taught, at, served.experiment, digest[8:16].hex(), control)


def _salt(application: Application) -> str:
    """Return what hashes differ by. A larger share keeps who is in the control group already."""
    return f"{application.id}|{application.created_at}|{application.settings.control_version}"


def _key_of(name: str | None, context: bytes, headers: Headers) -> str | None:
    """Return the key of a unit; None: there is none, so that the event is a unit of its own."""
    if name is None:
        return None
    if name.startswith(HEADER):
        wanted = name.removeprefix(HEADER).lower().encode()
        return next((value.decode("latin-1") for key, value in headers if key == wanted), None) or None
    found: Any = _parsed(context)
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return str(found) if isinstance(found, str | int | float) and found != "" else None
