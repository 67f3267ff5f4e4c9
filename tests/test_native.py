"""The compiled core: its types for mypy are those of the extension, and every level of instructions can be chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import o2pl
from o2pl import _core

LEVELS = ("plain", "avx2", "avx512")


def test_the_types_are_those_of_the_extension(tmp_path: Path) -> None:
    stubgen = pytest.importorskip("nanobind.stubgen", reason="needs nanobind, of the extra dev")
    stubgen.main(["-q", "-D", "-m", "o2pl._core", "-o", str(tmp_path / "_core.pyi")])
    committed = Path(o2pl.__file__).with_name("_core.pyi").read_text()
    assert (tmp_path / "_core.pyi").read_text() == committed, "src/o2pl/_core.pyi is old: run `make stubs`"


@pytest.mark.parametrize("asked", LEVELS)
def test_a_level_can_be_asked_for(asked: str) -> None:
    code = "from o2pl import _core; print(_core.level())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "O2PL_LEVEL": asked},
        capture_output=True,
        text=True,
        check=True,
    )
    found = done.stdout.strip()
    assert LEVELS.index(found) <= LEVELS.index(asked)  # a machine may not have it


def test_the_level_is_one_of_them() -> None:
    assert _core.level() in LEVELS
