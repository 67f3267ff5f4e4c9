from __future__ import annotations

import subprocess
import sys
from queue import Queue

import numpy as np
import pytest
from tests.demo.steps import CALLS

from o2pl.demo.served import Running, ServedCalls, serve_readers, served_demo
from o2pl.errors import InvalidInput


def test_readers_are_answered_over_http_and_the_service_is_stopped() -> None:
    said: list[str] = []
    with served_demo() as running:
        found = serve_readers(running, 60, said.append)
    assert running.process.poll() is not None
    assert said[1] == "60 readers call it over HTTP"
    assert len(found.calls) == 60
    assert {call.earned for call in found.calls} <= {0.0, 1.0}
    assert found.milliseconds > 0
    shown = [action["id"] for action in found.asked["actions"]]
    assert found.answered["rewardActionId"] in shown
    assert abs(sum(one["probability"] for one in found.answered["ranking"]) - 1) < 1e-6


def test_a_service_that_ends_at_once_is_told() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], text=True) as process:
        process.wait()
        with pytest.raises(InvalidInput, match="did not start; try it by itself: o2pl serve"):
            Running(process, Queue()).wait()


def test_clicks_by_parts_of_the_calls() -> None:
    found = ServedCalls(CALLS, 1.0, 1.0, {}, {})
    np.testing.assert_allclose(found.course("chosen", 2), [0.1, 0.4])
    assert found.clicks("best", 0, 10) == 0.5
