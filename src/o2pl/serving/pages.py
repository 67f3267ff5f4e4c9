"""The page and what it asks for: `GET /`, and under `/page/` with a read key. Rolling back takes a write key."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Callable
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, Body, HTTPException, Request, Response

from o2pl.errors import InvalidInput
from o2pl.serving import summary
from o2pl.serving.store import Store
from o2pl.serving.told import tell_event

_PARTS = ("page.css", "charts.js", "page.js")
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
_KEPT = {"hour": 1.0, "day": 5.0, "week": 20.0, "month": 60.0}  # seconds for which a summary is given out again

# The application that the key of a request belongs to. It refuses a request without a key that has this role; a key
# that may write may read.
Authorise = Callable[[Request, str], int]


def make_router(store: Store, authorise: Authorise) -> APIRouter:
    """Routes that read the store in threads, so that calls of rank and reward do not wait for them."""
    router = APIRouter(include_in_schema=False)
    kept = _Kept()

    page_body, page_headers = page()

    @router.get("/")
    def whole_page() -> Response:
        return Response(page_body, media_type="text/html", headers=page_headers)

    @router.get("/page/summary")
    def summarised(request: Request, span: str = "hour") -> dict[str, Any]:
        number = authorise(request, "read")
        if span not in summary.SPANS:
            raise HTTPException(400, f"span: found {span!r}, expected one of {', '.join(summary.SPANS)}")

        def fresh() -> dict[str, Any]:
            application = store.application(number)
            with store.reading() as connection:
                return summary.summarise(connection, application, span)

        return kept.get((number, span), _KEPT[span], fresh)

    @router.get("/page/events")
    def events(request: Request) -> list[dict[str, Any]]:
        application = store.application(authorise(request, "read"))
        with store.reading() as connection:
            return summary.recent_events(connection, application)

    @router.get("/page/events/{event_id:path}")
    def event(request: Request, event_id: str) -> list[dict[str, Any]]:
        application = store.application(authorise(request, "read"))
        found = tell_event(store, application, event_id)
        if not found:
            raise HTTPException(404, f"event: found no decision with the id {event_id!r}")
        return found

    @router.post("/page/serve")
    def serve(request: Request, version: Annotated[int | None, Body(embed=True)]) -> dict[str, Any]:
        """Serve this version until told otherwise; null: the newest again."""
        number = authorise(request, "write")
        try:
            store.pin(number, version)
        except InvalidInput as error:
            raise HTTPException(404, str(error)) from None
        kept.forget(number)
        return {"version": version}

    return router


def page() -> tuple[str, dict[str, str]]:
    """One file with all that it needs, and headers that let it run nothing else and ask nobody else."""
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


class _Kept:
    """Answers that are given out again for a while: many may look at the page, and it asks often."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[tuple[int, str], tuple[float, dict[str, Any]]] = {}

    def get(self, key: tuple[int, str], seconds: float, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        with self._lock:
            if key not in self._answers or time.monotonic() - self._answers[key][0] > seconds:
                self._answers[key] = time.monotonic(), make()
            return self._answers[key][1]

    def forget(self, number: int) -> None:
        with self._lock:
            self._answers = {key: value for key, value in self._answers.items() if key[0] != number}
