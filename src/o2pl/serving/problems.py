"""Error answers: a status and a body in the format of Personalizer's clients."""

from __future__ import annotations

import msgspec

from o2pl.errors import InvalidInput
from o2pl.serving.database import StoreUnavailable

Headers = tuple[tuple[bytes, bytes], ...]
_LONGEST = 1000  # largest number of characters of a message
_JSON = (b"content-type", b"application/json")


class Detail(msgspec.Struct):
    """An error. code: for programs; message: for people."""

    code: str
    message: str


class ErrorBody(msgspec.Struct):
    """The body of an error answer."""

    error: Detail


class Reply(msgspec.Struct, frozen=True):
    """The answer to a call."""

    status: int
    body: bytes = b""
    headers: Headers = ()


class Problem(Exception):
    """An error answer; nothing was changed."""

    def __init__(self, status: int, code: str, message: str, headers: Headers = ()) -> None:
        super().__init__(message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …")
        self.status, self.code, self.headers = status, code, headers

    @property
    def reply(self) -> Reply:
        return Reply(self.status, msgspec.json.encode(ErrorBody(Detail(self.code, str(self)))), (_JSON, *self.headers))


def as_json(status: int, body: object) -> Reply:
    return Reply(status, msgspec.json.encode(body), (_JSON,))


NO_CONTENT = Reply(204)


def said(error: Exception, code: str) -> Problem | None:
    """Return the error answer for an exception; None: an internal error. code: error code for invalid requests."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, InvalidInput):
        return Problem(400, code, str(error))
    if isinstance(error, msgspec.DecodeError):  # includes ValidationError
        return Problem(400, code, f"body: {error}")
    if isinstance(error, UnicodeDecodeError):
        return Problem(400, code, f"body: not valid UTF-8, at byte {error.start}")
    if isinstance(error, RecursionError):
        return Problem(400, code, "body: JSON is nested too deeply")
    if isinstance(error, StoreUnavailable):
        return Problem(
            503, "ServiceUnavailable", "the store is not available now; try again", ((b"retry-after", b"1"),)
        )
    return None
