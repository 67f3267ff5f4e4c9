"""Access control: keys, body sizes and rate limits.

All paths need a key except a few without any data. Keys are compared in constant time and never logged.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from o2pl.serving.applications import digest, is_valid
from o2pl.serving.models import Models, Served
from o2pl.serving.problems import Problem

METRICS = "/metrics"
OPEN = frozenset({"/", "/health", "/ready", "/openapi.json"})  # paths without a key
_ASKS = ((b"www-authenticate", b"Bearer"),)


@dataclass(frozen=True)
class Limits:
    """Limits of a call."""

    body: int = 1 << 20  # bytes
    model: int = 1 << 28  # bytes of an uploaded model
    batch: int = 1000  # decisions or rewards per call
    actions: int = 1000  # actions per decision; Personalizer allows 50
    rate: float = 5000.0  # decisions and other calls per second and application, over time; 0: no limit
    burst: float = 10000.0  # at once
    operator_key: str | None = None  # sees the metrics of all applications


class Caller(NamedTuple):
    """The application and role of a key."""

    served: Served
    role: str
    key: str  # its digest


class Head(NamedTuple):
    """The relevant headers of a call."""

    key: str | None
    length: int | None
    if_match: str | None = None
    if_none_match: str | None = None


def head_of(headers: Iterable[tuple[bytes, bytes]]) -> Head:
    key, length, match, none_match = None, None, None, None
    for name, value in headers:
        if name == b"ocp-apim-subscription-key":
            key = value
        elif name == b"authorization" and value[:7].lower() == b"bearer " and key is None:
            key = value[7:].strip()
        elif name == b"x-api-key" and key is None:  # OpenFeature's clients
            key = value
        elif name == b"content-length":
            length = int(value) if value.isdigit() else None
        elif name == b"if-match":
            match = value.decode("latin-1").strip()
        elif name == b"if-none-match":
            none_match = value.decode("latin-1").strip()
    return Head(None if key is None else key.decode("latin-1"), length, match, none_match)


class AccessGuard:
    """Admits calls, or raises a `Problem`."""

    def __init__(self, models: Models, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._models, self.limits, self._clock = models, limits, clock
        self._buckets: dict[tuple[int, str], tuple[float, float]] = {}  # calls left, and time of the last update

    def caller(self, key: str | None) -> Caller | None:
        """Return the caller of a key; None: unknown key."""
        if not key:
            return None
        asked = digest(key)
        found: Any = None
        for known, application, role, ends in self._models.keys:  # compare all keys in constant time
            if is_valid(ends) and hmac.compare_digest(known, asked):
                found = application, role
        served = None if found is None else self._models.of.get(found[0])
        return None if served is None else Caller(served, found[1], asked)

    def is_operator(self, key: str | None) -> bool:
        """Return whether this is the operator's key."""
        own = self.limits.operator_key
        return bool(key) and own is not None and hmac.compare_digest(digest(own), digest(str(key)))

    def check_role(self, caller: Caller, role: str) -> None:
        if role == "write" and caller.role != "write":
            raise Problem(403, "OperationNotAllowed", "key: found a read key, expected the write key")

    def admit(self, whose: tuple[int, str], cost: int = 1) -> None:
        """Apply the rate limit, a token bucket: `burst` decisions at once, `rate` per second over time.

        whose: the application and the role, so that whoever writes too much can still look at the page.
        cost: decisions or rewards of a call. A full bucket admits any call.
        """
        rate, burst = self.limits.rate, self.limits.burst
        if rate <= 0 or cost <= 0:
            return
        now = self._clock()
        left, at = self._buckets.get(whose, (burst, now))
        left, needed = min(burst, left + (now - at) * rate), min(cost, burst)
        if left < needed:
            wait = max(1, round((needed - left) / rate))
            raise Problem(
                429, "TooManyRequests", f"rate limit: more than {rate:g} decisions or other calls per second by this"
                " application; retry later", ((b"retry-after", str(wait).encode()),),
            )  # fmt: skip
        self._buckets[whose] = left - cost, now


def no_key() -> Problem:
    return Problem(
        401, "Unauthorized",
        "key: missing, unknown or expired, expected a valid key in the header Ocp-Apim-Subscription-Key, or"
        " Authorization: Bearer",
        _ASKS,
    )  # fmt: skip


def too_large(most: int) -> Problem:
    return Problem(413, "PayloadSizeExceeded", f"body: found too large a body, expected at most {most} bytes")
