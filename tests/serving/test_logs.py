"""One JSON object per line."""

from __future__ import annotations

import json
import logging
import sys

from o2pl.serving.logs import JsonLines


def test_a_line_is_an_object() -> None:
    try:
        raise KeyError("why\n")
    except KeyError:
        record = logging.LogRecord("o2pl", logging.ERROR, "a.py", 1, "call %s", ("failed",), sys.exc_info())
    record.status, record.odd = 500, object
    line = JsonLines().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert (found["level"], found["logger"], found["message"], found["status"]) == ("error", "o2pl", "call failed", 500)
    assert "KeyError" in found["traceback"]
    assert found["time"].endswith("Z")
    assert "args" not in found
