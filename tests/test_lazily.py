"""Names that are imported when they are first used."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import o2pl
from o2pl import fitting, formats, simulation
from o2pl.lazily import lazily_imported


@pytest.mark.parametrize("package", [o2pl, formats, fitting])
def test_every_public_name_is_found(package: object) -> None:
    names = package.__all__
    assert set(names) <= set(dir(package))
    assert [name for name in names if getattr(package, name, None) is None] == []


def test_modules_are_found_as_attributes_and_nothing_else_is() -> None:
    assert o2pl.oracles.__name__ == "o2pl.oracles"
    with pytest.raises(AttributeError, match="module 'o2pl' has no attribute 'Bandt'"):
        _ = o2pl.Bandt


def test_heavy_libraries_wait_until_they_are_needed() -> None:
    """What `import o2pl` and `o2pl --help` must not load: each takes longer than all of the rest."""
    code = "import sys, o2pl, o2pl.cli; print(sorted({'scipy', 'pyarrow', 'jax'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_scipy_waits_for_the_first_learning() -> None:
    code = "import sys; from o2pl import O2PL, Bandit, load; print('scipy.special' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("package", [o2pl, formats, fitting, simulation])
def test_no_name_is_also_a_module(package: object) -> None:
    """Whoever imports the module would put it in the place of the name."""
    (folder,) = package.__path__
    modules = {each.name for each in pkgutil.iter_modules([folder])}
    assert modules.isdisjoint(package.__all__)


def test_a_name_that_is_also_a_module_is_refused() -> None:
    with pytest.raises(ImportError, match="also modules of it: describing"):
        lazily_imported("o2pl.formats", {"o2pl.formats.describing": "describing"})
