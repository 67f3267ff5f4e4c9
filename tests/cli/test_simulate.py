"""The lines of `o2pl simulate`; the command against a running service is in `tests/serving/test_simulate.py`."""

from __future__ import annotations

from o2pl.cli.simulate import _Lines
from o2pl.serving.simulate import Played


def test_each_line_has_the_means_of_a_tenth_of_the_calls() -> None:
    said: list[str] = []
    lines = _Lines(20, said.append)
    for k in range(21):
        lines.add(Played(earned=k % 2, chosen=0.25, best=0.5 if k < 20 else 0.3, uniform=0.125, editor=0.375))
    lines.end()
    assert len(said) == 1 + 11 + 1  # the head, ten lines and one of the last call, the summary
    assert said[1].split() == ["2", "0.500", "0.250", "0.500", "0.375", "0.125", "0.250"]
    assert said[-1] == "regret per call: 0.250 at the start, 0.050 at the end"
