"""The process of a server: its socket, uvicorn around the app, and the trainer beside it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn

from o2pl.errors import InvalidInput
from o2pl.serving.access_control import Limits
from o2pl.serving.api import make_app
from o2pl.serving.logs import log_to_stderr
from o2pl.serving.protocol import BoundedHttp
from o2pl.serving.service import Service
from o2pl.serving.store import Store
from o2pl.serving.tracing import traces_to
from o2pl.serving.trainer_supervisor import has_trainer, supervise

_DRAIN = 10  # seconds to finish open requests when the server stops
_BACKLOG = 2048  # connections that wait to be accepted


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. port 0: any free one."""
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(where[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InvalidInput(
            f"host and port: cannot listen on {host}:{port} ({error.strerror or error}). Choose a free port, such as"
            " --port 8001"
        ) from None


def run(
    store: Store, listening: socket.socket, database: str, trainer: Sequence[str] | None, rate: float, max_body: int,
    max_lag: float, log_calls: bool, ready: Callable[[], None], traces: str | None = None,
    operator_key: str | None = None,
) -> None:  # fmt: skip
    """Serve until stopped. trainer: arguments of the trainer's process, None: none; ready: called after the start.

    traces: address for OpenTelemetry's spans; None: there are none. operator_key: for the metrics of all applications.
    """

    async def say_ready() -> None:
        ready()

    log_to_stderr()
    service = Service(
        store,
        Limits(body=max_body, rate=rate, burst=2 * rate, operator_key=operator_key),
        max_lag,
        None if traces is None else traces_to(traces),
    )
    beside: list[Any] = [say_ready]
    if trainer is not None and has_trainer():
        beside.append(lambda: supervise(trainer, database))
    app = make_app(service, log_calls=log_calls, beside=beside)
    config = uvicorn.Config(
        app, http=BoundedHttp, ws="none", lifespan="on", log_config=None, access_log=False, server_header=False,
        timeout_graceful_shutdown=_DRAIN, timeout_keep_alive=60, backlog=_BACKLOG, proxy_headers=False,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])
