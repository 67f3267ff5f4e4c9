"""The ASGI application of a server: `Front` for our own routes, FastAPI for the rest."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from o2pl.serving.access_control import METRICS
from o2pl.serving.front import Front
from o2pl.serving.openapi import document
from o2pl.serving.page_api import page
from o2pl.serving.problems import Detail, ErrorBody, Problem, as_json
from o2pl.serving.service import Service
from o2pl.serving.tracing import Untraced
from o2pl.version import __version__

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_ABOUT = "A decision service that learns from rewards: rank or decide, then send the reward."


def make_app(
    service: Service, poll: float = 0.5, log_calls: bool = False, beside: Sequence[Callable[[], Awaitable[None]]] = ()
) -> Any:
    """Create the application. poll: seconds between checks for new models and settings. beside: background task."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.refresh()
        await service.blocking(service.watch.look)
        own = (lambda: service.models.follow(poll), service.watch.follow)
        tasks = [asyncio.ensure_future(each()) for each in (*own, *beside)]
        gc.collect()
        gc.freeze()  # exclude the current objects from garbage collection
        service.ready = True
        yield
        service.ready = False
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await service.blocking(service.stop)

    app = FastAPI(
        title="o2pl", version=__version__, description=_ABOUT, lifespan=lifespan, docs_url=None, redoc_url=None
    )
    _add_operation(app, service)
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            made.update(document(FastAPI.openapi(app)))
        return made

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's documentation has it
    front = Front(app, service, log_calls)
    return front if isinstance(service.traces, Untraced) else service.traces.around(front)


def _add_operation(app: FastAPI, service: Service) -> None:
    """Add the dashboard, health, readiness and metrics routes."""
    body, headers = page()

    @app.get("/", include_in_schema=False)
    async def whole_page() -> Response:
        return Response(body, media_type="text/html", headers=headers)

    @app.get("/health", summary="Health: the process is running", tags=["operation"])
    async def health() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/ready", summary="Readiness: calls can be answered", tags=["operation"])
    async def ready() -> Response:
        problems = service.watch.problems()
        fine = service.ready and not problems
        return JSONResponse({"status": "ready" if fine else "not ready", "problems": problems}, 200 if fine else 503)

    @app.get(
        METRICS,
        summary="Prometheus metrics: of the key's application, or of all with the operator's key",
        tags=["operation"],
        response_class=PlainTextResponse,
    )
    async def metrics(request: Request) -> Response:
        caller = request.scope["caller"]
        own = None if caller is None else caller.served.application.name
        return PlainTextResponse(service.metrics.text(own), media_type=_TEXT)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        code = "ResourceNotFound" if error.status_code == 404 else "BadRequest"
        body = as_json(error.status_code, ErrorBody(Detail(code, str(error.detail))))
        return Response(body.body, error.status_code, error.headers, media_type="application/json")

    @app.exception_handler(Problem)
    async def said(request: Request, error: Problem) -> Response:
        headers = {name.decode(): value.decode() for name, value in error.reply.headers}
        return Response(error.reply.body, error.status, headers)
