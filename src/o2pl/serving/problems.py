"""What a call is told when it cannot be served: a status and a body in the shape that Personalizer's clients know."""

from __future__ import annotations

import msgspec

from o2pl.errors import InvalidInput
from o2pl.serving.database import StoreUnavailable

Headers = tuple[tuple[bytes, bytes], ...]
_LONGEST = 1000  # letters of a message, which may say what was found
_JSON = (b"content-type", b"application/json")


class Detail(msgspec.Struct):
    """code: for programs. message: for people."""

    code: str
    message: str


class ErrorBody(msgspec.Struct):
    """What went wrong."""

    error: Detail


class Reply(msgspec.Struct, frozen=True):
    """What goes back to the caller."""

    status: int
    body: bytes = b""
    headers: Headers = ()


class Problem(Exception):
    """A refusal; nothing was changed."""

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
    """The refusal that an error stands for; None: it is a fault of ours. code: of what the caller sent."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, InvalidInput):
        return Problem(400, code, str(error))
    if isinstance(error, msgspec.DecodeError):  # also of values: ValidationError is one
        return Problem(400, code, f"body: {error}")
    if isinstance(error, UnicodeDecodeError):
        return Problem(400, code, f"body: found bytes that are not UTF-8, at byte {error.start}")
    if isinstance(error, RecursionError):
        return Problem(400, code, "body: found JSON that is nested too deeply")
    if isinstance(error, StoreUnavailable):
        return Problem(503, "ServiceUnavailable", "the store cannot be used now; try again", ((b"retry-after", b"1"),))
    return None
