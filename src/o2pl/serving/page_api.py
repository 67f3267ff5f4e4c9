"""The dashboard: `GET /`, and its data under `/page/` with a read key (serving another version: a write key)."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import msgspec

from o2pl.errors import InvalidInput
from o2pl.serving import page_summary, row_reads
from o2pl.serving.event_description import tell_event
from o2pl.serving.health import lag_of
from o2pl.serving.problems import Problem, Reply, as_json
from o2pl.serving.service import Call, Route
from o2pl.serving.store import Store
from o2pl.serving.trainer_lease import someone_trains

_PARTS = ("page.css", "charts.js", "page.js", "control.js")
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
_SECONDS = {"hour": 1.0, "day": 5.0, "week": 20.0, "month": 60.0}  # cache time of a summary
_CODE = "InvalidPageRequest"


def page() -> tuple[str, dict[str, str]]:
    """Return the self-contained page, and headers that forbid other scripts and other hosts."""
    folder = resources.files("o2pl.serving") / "page"
    whole = (folder / "index.html").read_text("utf-8")
    allowed: dict[str, list[str]] = {"css": [], "js": []}
    for name in _PARTS:
        text = (folder / name).read_text("utf-8")
        whole = whole.replace(f"{{{name}}}", text)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[name.rpartition(".")[2]].append(f"'sha256-{digest}'")
    policy = (
        f"default-src 'none'; script-src {' '.join(allowed['js'])}; style-src {' '.join(allowed['css'])}; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return whole, {"Content-Security-Policy": policy, **_HEADERS}


# -- data of the dashboard, read in threads so that rank and reward calls do not wait


def _summarised(span: str) -> Callable[[Call], Awaitable[Reply]]:
    async def handler(call: Call) -> Reply:
        store, number = call.service.store, call.served.application.id

        def fresh() -> bytes:
            application = store.application(number)
            with store.reading() as connection:
                found = page_summary.summarise(connection, application, span)
                found["state"]["lag"] = lag_of(connection, application, time.time())._asdict()
                found["state"]["failed"] = row_reads.note(connection, f"{row_reads.FAILED}{number}") or None
            found["state"]["trainer"] = someone_trains(store)
            found["models"]["failed"] = call.served.failed
            return as_json(200, found).body

        kept = _KEPT.setdefault(store, _Kept())
        return as_json(200, msgspec.Raw(await call.service.blocking(kept.get, (number, span), _SECONDS[span], fresh)))

    return handler


async def events(call: Call) -> Reply:
    store, application = call.service.store, call.served.application

    def found() -> list[dict[str, Any]]:
        with store.reading() as connection:
            return page_summary.recent_events(connection, application)

    return as_json(200, await call.service.blocking(found))


async def event(call: Call) -> Reply:
    told = await call.service.blocking(tell_event, call.service.store, call.served.application, call.event_id)
    if not told:
        raise Problem(404, "ResourceNotFound", f"event: found no decision with the id {call.event_id!r}")
    return as_json(200, told)


class ServeRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Serve this version until further notice; null: the newest again."""

    version: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None


async def serve(call: Call) -> Reply:
    asked = msgspec.json.decode(call.body, type=ServeRequest)
    store, number = call.service.store, call.served.application.id
    try:
        await call.service.blocking(store.pin, number, asked.version)
    except InvalidInput as error:
        raise Problem(404, "ResourceNotFound", str(error)) from None
    _KEPT.setdefault(store, _Kept()).forget(number)
    await call.service.refresh()
    return as_json(200, asked)


class _Kept:
    """Cached answers: many browsers may show the dashboard, and each refreshes often."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[tuple[int, str], tuple[float, bytes]] = {}

    def get(self, key: tuple[int, str], seconds: float, make: Callable[[], bytes]) -> bytes:
        with self._lock:
            if key not in self._answers or time.monotonic() - self._answers[key][0] > seconds:
                self._answers[key] = time.monotonic(), make()
            return self._answers[key][1]

    def forget(self, number: int) -> None:
        with self._lock:
            self._answers = {key: value for key, value in self._answers.items() if key[0] != number}


_KEPT: WeakKeyDictionary[Store, _Kept] = WeakKeyDictionary()


def _route(method: str, path: str, handler: Callable[[Call], Awaitable[Reply]], said: str, role: str = "read") -> Route:
    return Route(method, path, handler, _CODE, said, role=role, documented=False, tag="page")


ROUTES = [
    *(_route("GET", f"/page/summary/{span}", _summarised(span), f"Dashboard data, last {span}") for span in _SECONDS),
    _route("GET", "/page/events", events, "The newest decisions"),
    _route("GET", "/page/events/{eventId}/told", event, "One event with its explanation"),
    _route("POST", "/page/serve", serve, "Serve another version", role="write"),
]
