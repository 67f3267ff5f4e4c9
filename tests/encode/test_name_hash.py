"""The hash of names: the same everywhere, and its collisions those of chance."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest

from o2pl.encode.name_hash import name_hash


def test_hashes_stay_what_they_are() -> None:
    known = {"user.id=u17": 4116097828, "user.age": 4000801328, "": 0, "città=Ærø": 3612434409}
    assert {name: name_hash(name) for name in known} == known
    elsewhere = "from o2pl.encode.name_hash import name_hash; print(name_hash('user.id=u17'))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    found = subprocess.run(
        [sys.executable, "-c", elsewhere], capture_output=True, text=True, check=True, env=environment
    )
    assert int(found.stdout) == known["user.id=u17"]


@pytest.mark.parametrize("pattern", ["id=u{}", "id={:06d}", "a.{}", "{}=x"])
def test_collisions_are_those_of_chance(pattern: str) -> None:
    """The number of indices in use: normal by the occupancy problem; each within 4.5 deviations, level 7e-6."""
    n, width = 30_000, 2**16
    used = len({name_hash(pattern.format(i)) % width for i in range(n)})
    empty = math.exp(-n / width)
    deviation = math.sqrt(width * (empty - (1 + n / width) * empty**2))
    assert abs(used - width * (1 - empty)) < 4.5 * deviation
