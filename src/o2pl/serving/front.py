"""The front of the server: it checks every call first, and serves our own routes.

Other routes (health, metrics, the dashboard) are passed to the application behind it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import Any

from o2pl.serving import (
    absent_calls,
    configuration_api,
    control_api,
    log_api,
    ofrep_api,
    page_api,
    personalizer_api,
    plain_api,
)
from o2pl.serving.access_control import METRICS, OPEN, Caller, head_of, no_key, too_large
from o2pl.serving.fair_turns import FairTurns
from o2pl.serving.problems import Problem, Reply, said
from o2pl.serving.service import Call, Route, Service

_LOGGER = logging.getLogger("o2pl.serving")
_BODY_SECONDS = 30.0  # time limit for sending a body
_SLOW = 1.0  # seconds; slower calls are logged
ROUTES: list[Route] = [
    *plain_api.ROUTES, *personalizer_api.ROUTES, *configuration_api.ROUTES, *control_api.ROUTES, *log_api.ROUTES,
    *absent_calls.ROUTES, *ofrep_api.ROUTES, *page_api.ROUTES,
]  # fmt: skip
_ADMINISTRATIVE = ("settings", "page")  # tags of routes whose changes are logged


class Table:
    """Route lookup. A path has at most one placeholder, such as `{eventId}`."""

    def __init__(self, routes: list[Route]) -> None:
        self._exact = {(route.method, route.path): route for route in routes if "{" not in route.path}
        self._open: dict[tuple[str, str, str], Route] = {}  # by method, and the path before and after the placeholder
        for route in routes:
            before, found, after = route.path.partition("{")
            if found:
                self._open[route.method, before, after.partition("}")[2]] = route
        self._words = dict.fromkeys(f"/{before.split('/')[-2]}/" for _, before, _ in self._open)  # such as /events/

    def find(self, method: str, path: str) -> tuple[Route | None, str]:
        """Return the route, and what stands for its placeholder. An unsupported method is an error."""
        route = self._exact.get((method, path))
        if route is not None:
            return route, ""
        known: list[str] = []
        for word in self._words:
            before, found, rest = path.partition(word)
            if found:
                named, slash, after = rest.rpartition("/")
                for name, end in ((named, slash + after), (rest, "")):
                    route = self._open.get((method, before + word, end))
                    if route is not None:
                        return route, name
                    known += [own for own, *rest_of in self._open if rest_of == [before + word, end]]
        known += [own for own, exact in self._exact if exact == path]
        if known:
            raise _other_method(method, ", ".join(dict.fromkeys(known)))
        return None, ""


def _other_method(method: str, known: str) -> Problem:
    allow = ((b"allow", known.encode()),)
    return Problem(405, "BadRequest", f"method: found {method}, expected {known}", allow)


class Front:
    """An ASGI application that wraps another."""

    def __init__(self, behind: Any, service: Service, log_calls: bool = False) -> None:
        self._behind, self._service, self._log_calls = behind, service, log_calls
        self._table, self._turns = Table(ROUTES), FairTurns()
        self._said = -math.inf  # time of the last "store unavailable" log line: never
        self._refused = 0  # refused calls since
        self._key_said, self._keys_refused = -math.inf, 0  # the same for unknown keys

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._behind(scope, receive, send)
            else:  # web sockets are not supported
                await send({"type": "websocket.close", "code": 1008})
            return
        told = scope.get("told")  # of a trace
        began, limits = time.perf_counter(), self._service.guard.limits
        if scope["method"] == "HEAD":  # the answer of GET; the server leaves its body out
            scope = {**scope, "method": "GET"}
        method, path = scope["method"], scope["path"]
        name, code, caller, route = "other", "BadRequest", None, None
        try:
            head = head_of(scope["headers"])
            caller = self._service.guard.caller(head.key)
            if caller is None and head.key:  # the key may be new
                await self._service.look_again()
                caller = self._service.guard.caller(head.key)
            operator = path == METRICS and self._service.guard.is_operator(head.key)
            if caller is None and path not in OPEN and not operator:
                self._say_refused(scope)
                raise no_key()
            if caller is not None:
                self._service.guard.admit((caller.served.application.id, caller.role))
            route, named = self._table.find(method, path)
            if route is None:
                scope["caller"] = caller
                body = b"" if method == "GET" else await _body(receive, head.length, limits.body)
                status = await self._pass_on(scope, body, receive, send)
                self._done(name, method, path, status, began, caller, told)
                return
            assert caller is not None  # our own routes always need a key
            name, code = route.path, route.code
            self._service.guard.check_role(caller, route.role)
            body = await _body(receive, head.length, limits.model if route.large else limits.body)
            call = Call(self._service, caller.served, body, named, head.if_match, head.if_none_match, scope["headers"])
            reply = await self._in_turn(caller.served.application.id, route, call)
        except Exception as error:
            problem = said(error, code)
            if problem is None:
                _LOGGER.exception("call failed", extra={"route": name})
                problem = Problem(500, "InternalServerError", "internal error; see the log of the service")
            elif problem.status == 503:
                self._say_unavailable(error)
            reply = problem.reply
        await _send(send, reply)
        if method != "GET" and route is not None and route.tag in _ADMINISTRATIVE and caller is not None:
            told = {"application": caller.served.application.name, "key": caller.key[:12], "method": method}
            client = (scope.get("client") or ["unknown"])[0]
            _LOGGER.info("administrative call", extra={**told, "path": path, "status": reply.status, "client": client})
        self._done(name, method, path, reply.status, began, caller, told)

    async def _in_turn(self, application: int, route: Route, call: Call) -> Reply:
        """Answer a call. Those of the page and of settings are few, and long ones must hold up no decisions."""
        if route.tag in _ADMINISTRATIVE:
            return await route.handler(call)
        await self._turns.begin(application)
        try:
            return await route.handler(call)
        finally:
            self._turns.end(application)

    def _say_refused(self, scope: Any) -> None:
        """Count calls without a known key, and log where they come from, at most once a second."""
        self._service.metrics.key_refused()
        self._keys_refused += 1
        if time.monotonic() - self._key_said >= 1:
            told = {"client": (scope.get("client") or ["unknown"])[0], "calls_refused": self._keys_refused}
            _LOGGER.warning("key missing, unknown or expired", extra=told)
            self._key_said, self._keys_refused = time.monotonic(), 0

    def _say_unavailable(self, error: Exception) -> None:
        """Log at most once a second: all calls fail in the same way."""
        self._refused += 1
        if time.monotonic() - self._said >= 1:
            _LOGGER.error("store unavailable", extra={"reason": str(error), "calls_refused": self._refused})
            self._said, self._refused = time.monotonic(), 0

    async def _pass_on(self, scope: Any, body: bytes, receive: Any, send: Any) -> int:
        """Pass a call to the wrapped application. Returns the status of its answer."""
        status, given = 500, False

        async def read() -> Any:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def noted(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self._behind(scope, read, noted)
        return status

    def _done(
        self, name: str, method: str, path: str, status: int, began: float, caller: Caller | None, told: Any
    ) -> None:
        seconds = time.perf_counter() - began
        self._service.metrics.answered(name, status, seconds)
        if told is not None:
            told |= {"http.route": name, "http.response.status_code": status}
            if caller is not None:
                told["o2pl.application"] = caller.served.application.name
        if self._log_calls or status == 500 or seconds > _SLOW:
            application = None if caller is None else caller.served.application.name
            said_of = {
                "method": method,
                "path": path,
                "status": status,
                "seconds": round(seconds, 6),
                "application": application,
            }
            _LOGGER.log(logging.WARNING if status == 500 else logging.INFO, "call", extra=said_of)


async def _body(receive: Any, length: int | None, most: int) -> bytes:
    if length is not None and length > most:
        raise too_large(most)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > most:
            raise too_large(most)
        return body
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await _long_body(receive, message, most)
    except TimeoutError:
        raise Problem(408, "BadRequest", f"body: incomplete after {_BODY_SECONDS:g} seconds") from None


async def _long_body(receive: Any, message: Any, most: int) -> bytes:
    parts, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise Problem(400, "BadRequest", "body: incomplete")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise too_large(most)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


async def _send(send: Any, reply: Reply) -> None:
    headers = list(reply.headers)
    if reply.status not in (204, 304):
        headers.append((b"content-length", str(len(reply.body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
