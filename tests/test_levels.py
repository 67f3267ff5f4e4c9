from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import at_level

SCRIPT = Path(__file__).with_name("at_level.py")
SERVER = dict.fromkeys(["X86_V2", "AVX2", "X86_V3", "AVX512F", "X86_V4", "AVX512_ICL"], True) | {"AVX512_SPR": False}
DESKTOP = dict.fromkeys(["X86_V2", "AVX2", "X86_V3"], True) | {"AVX512F": False, "X86_V4": False, "AVX512_ICL": False}
OLD = {"SSE42": True, "AVX2": False, "AVX512F": False}
DISPATCHED = ["X86_V3", "X86_V4", "AVX512_ICL", "AVX512_SPR"]  # as of NumPy 2.4


@pytest.mark.parametrize(
    ("features", "own", "of_avx2", "of_plain"),
    [
        (SERVER, "avx512", ["X86_V4", "AVX512_ICL"], ["X86_V3", "X86_V4", "AVX512_ICL"]),
        (DESKTOP, "avx2", [], ["X86_V3"]),
        (OLD, "plain", [], []),
    ],
)
def test_what_a_level_is_without(features: Any, own: str, of_avx2: list[str], of_plain: list[str]) -> None:
    """Only what the machine has is named: NumPy warns of the rest."""
    assert at_level.highest(features) == own
    assert at_level.to_disable("avx2", features, DISPATCHED) == of_avx2
    assert at_level.to_disable("plain", features, DISPATCHED) == of_plain


def test_names_of_numpy_before_its_levels() -> None:
    features = dict.fromkeys(["SSE42", "AVX2", "FMA3", "AVX512F", "AVX512_SKX"], True) | {"AVX512_KNL": False}
    assert at_level.to_disable("avx2", features, list(features)) == ["AVX512F", "AVX512_SKX"]


def test_python_runs_at_the_level_below_without_a_warning() -> None:
    code = "import os, numpy; from o2pl import _core; print(os.environ.get('O2PL_LEVEL'), _core.level())"
    arguments = [sys.executable, SCRIPT, "-W", "error", "-c", code]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    said, *found = done.stdout.splitlines()
    if found:
        assert said.startswith(f"CPU level {found[0].split()[0]}, of a machine with ")
        assert len(set(found[0].split())) == 1
    else:
        assert said.endswith("nothing is run")
