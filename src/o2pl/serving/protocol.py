"""HTTP connections whose request heads are limited in size and in time: slow or endless ones are closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 65536  # request line and headers
HEAD_SECONDS = 10.0  # from the first byte, or from the connection, to the end of the headers
_SAID = {408: "Request Timeout", 431: "Request Header Fields Too Large"}
_MESSAGES = {408: "headers: incomplete after {:g} seconds", 431: "headers: found more than {:g} bytes"}


class BoundedHttp(HttpToolsProtocol):
    """uvicorn's protocol, with both limits."""

    head_bytes, head_seconds = HEAD_BYTES, HEAD_SECONDS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._size = 0  # of the head so far
        self._timer: asyncio.TimerHandle | None = None  # while a head is awaited
        self._refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._complete()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.head_seconds, self._refuse, 408, self.head_seconds)

    def _complete(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._size = 0

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._timer is not None:  # before the parser sees it, which keeps what is incomplete
            self._size += len(data)
        super().data_received(data)
        if self._timer is not None and self._size > self.head_bytes and not self._refused:
            self._refuse(431, self.head_bytes)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        length = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if length > self.head_bytes:
            self._refuse(431, self.head_bytes)
            return
        self._complete()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def _refuse(self, status: int, limit: float) -> None:
        self._refused = True
        self._complete()
        if self.transport.is_closing():
            return
        code = "BadRequest"
        body = f'{{"error":{{"code":"{code}","message":"{_MESSAGES[status].format(limit)}"}}}}'.encode()
        head = f"HTTP/1.1 {status} {_SAID[status]}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        if self.cycle is None or self.cycle.response_complete:  # else an answer is being written
            self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()
