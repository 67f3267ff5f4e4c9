"""Errors that callers can mend are said to them; others are faults of ours."""

from __future__ import annotations

import msgspec
import pytest

from o2pl import InvalidInput
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.problems import Problem, said

NOT_UTF8 = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidInput("x: found y"), 400, "mine"),
        (msgspec.ValidationError("x"), 400, "mine"),
        (msgspec.DecodeError("x"), 400, "mine"),
        (NOT_UTF8, 400, "mine"),
        (RecursionError(), 400, "mine"),
        (StoreUnavailable("postgresql://secret"), 503, "ServiceUnavailable"),
        (Problem(409, "theirs", "x"), 409, "theirs"),
    ],
)
def test_what_is_said(error: Exception, status: int, code: str) -> None:
    problem = said(error, "mine")
    assert problem is not None
    reply = problem.reply
    assert (reply.status, msgspec.json.decode(reply.body)["error"]["code"]) == (status, code)
    assert b"secret" not in reply.body
    assert (b"content-type", b"application/json") in reply.headers


def test_a_fault_is_not_said() -> None:
    assert said(KeyError("x"), "mine") is None


def test_messages_are_cut() -> None:
    assert len(Problem(400, "code", "x" * 10_000).reply.body) < 1100
