"""Names that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import o2pl
from o2pl import fitting, formats


@pytest.mark.parametrize("package", [o2pl, formats, fitting])
def test_every_public_name_is_found(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert set(names) <= set(dir(package))
    assert [name for name in names if getattr(package, name, None) is None] == []


def test_modules_are_found_as_attributes_and_nothing_else_is() -> None:
    assert o2pl.oracles.__name__ == "o2pl.oracles"
    with pytest.raises(AttributeError, match="module 'o2pl' has no attribute 'Bandt'"):
        _ = o2pl.Bandt


def test_heavy_libraries_wait_until_they_are_needed() -> None:
    """What `import o2pl` and `o2pl --help` must not load: each takes longer than all of the rest."""
    code = "import sys, o2pl, o2pl.cli; print(sorted({'numba', 'scipy', 'pyarrow', 'jax'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_scipy_waits_for_the_first_learning() -> None:
    code = "import sys; from o2pl import O2PL, Bandit, load; print('scipy.special' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
