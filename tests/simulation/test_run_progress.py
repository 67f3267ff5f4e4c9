"""What is shown while a run goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from toy_experiment import TOY

from o2pl.simulation import run_progress
from o2pl.simulation.engines import Failed, Finished
from o2pl.simulation.experiment import Options

UNITS = TOY.units(Options("full"))
BAD = Failed("ValueError: [no] luck", "")


def test_plain_lines_are_few_and_tell_of_failures_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 3))  # every look at the clock is three seconds later
    monkeypatch.setattr(run_progress.time, "monotonic", lambda: next(clock))
    lines: list[str] = []
    with run_progress.Plain(lines.append, every=10.0) as shown:
        shown.begin("toy", missing=6, finished=2)
        for unit in UNITS[:6]:
            shown.ended(unit, BAD if unit.number == 4 else Finished({}, 1.0))
    assert lines == [
        "toy: 6 units to compute, 2 done before",
        "toy: 4 of 6 units done, 20.0 units/min, about 6 s left",
        "failed: toy/4 (two on moon, seed 0): ValueError: [no] luck",
        "toy: 6 of 6 units done, 20.0 units/min",
    ]


def test_no_time_left_is_said_before_it_can_be_known() -> None:
    pace = run_progress.Pace(100)
    said = []
    for second in [60, *range(61, 160)]:  # the first unit waits a minute for kernels; then one ends each second
        pace.ended(float(second))
        said.append(pace.text)
    assert said[:10] == [""] * 10  # a tenth of them, beside the first
    assert said[10] == "1.0 units/s, about 1 min 29 s left"  # the minute of kernels does not count
    assert said[-2:] == ["1.0 units/s, about 1 s left", "1.0 units/s"]
    two = run_progress.Pace(2)
    two.ended(5.0)
    assert two.text == ""


def test_the_bar_shows_units_done_and_failures_as_they_are() -> None:
    screen = io.StringIO()
    with run_progress.ProgressBar(Console(file=screen, force_terminal=True, width=120, color_system=None)) as shown:
        shown.begin("toy", missing=2, finished=0)
        shown.ended(UNITS[0], Finished({}, 1.0))
        shown.ended(UNITS[1], BAD)
    text = screen.getvalue()
    assert "toy: 2 units to compute\n" in text
    assert "failed: toy/1 (two on sun, seed 0): ValueError: [no] luck" in text
    assert "2/2 units" in text
    assert "left" not in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (7260, "2 h 01 min")],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert run_progress.run_progress_duration(seconds) == text
