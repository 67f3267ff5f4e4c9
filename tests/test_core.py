"""The core is small: what it needs, what it does without the extras, and what the extras are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import o2pl
from o2pl import MissingExtra
from o2pl.extras import EXTRAS, PACKAGES, extra

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SCRIPT = str(ROOT / "tests/core_only.py")
NOT_CORE = sorted({"joblib", "pandas"}.union(*EXTRAS.values()))  # these two come along with others


def packages(requirements: list[str]) -> set[str]:
    """Those that every machine gets; what makes some of them faster has a marker."""
    return {re.split(r"[\[<>=]", each)[0] for each in requirements if ";" not in each}


def test_the_core_works_alone_and_says_which_extra_is_missing() -> None:
    plain = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "O2PL_DATA"):
        plain.pop(name, None)
    # A module that is None cannot be imported or found: it is as if it were not installed.
    blocked = f"import runpy, sys; sys.modules |= dict.fromkeys({NOT_CORE})"
    code = f"{blocked}; runpy.run_path({SCRIPT!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=plain)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tests_that_need_jax_are_skipped_without_it() -> None:
    folder = ROOT / "tests" / "policies"
    arguments = [
        "-rs",
        "-p",
        "no:cacheprovider",
        *(str(folder / f"test_{name}.py") for name in ("network", "jax_helpers")),
    ]
    code = f"import pytest, sys; sys.modules |= dict.fromkeys(['jax', 'jaxlib']); sys.exit(pytest.main({arguments}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"SKIPPED \[(\d)\] .*test_(\w+)\.py.*: (JAX is not|could not import 'jax')", done.stdout) == [
        ("1", "jax_helpers", "could not import 'jax'"),
        ("3", "network", "JAX is not"),
    ]


def test_the_core_needs_what_acting_and_learning_need() -> None:
    assert packages(PROJECT["dependencies"]) == {"numpy", "rich", "threadpoolctl", "typer"}


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_brings_what_its_message_names(name: str) -> None:
    expected = {PACKAGES.get(module, module) for module in EXTRAS[name]}
    assert packages(PROJECT["optional-dependencies"][name]) == expected


def test_the_readme_lists_every_extra() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert listed == list(PROJECT["optional-dependencies"])


def test_another_packages_trouble_keeps_its_own_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "odd", ("nobody_has_this",))
    said = r"counting needs nobody_has_this: pip install 'o2pl\[odd\]'"
    with pytest.raises(MissingExtra, match=said), extra("odd", "counting"):
        import nobody_has_this.parts  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="nor_this"), extra("odd", "counting"):
        import nor_this  # noqa: F401


def test_the_version_is_in_one_place() -> None:
    version = (ROOT / "src/o2pl/version.py").read_text()
    assert "version" in PROJECT["dynamic"]
    assert f'__version__ = "{o2pl.__version__}"' in version
    assert f"\nversion: {o2pl.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {o2pl.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_constraints_are_names_and_versions_alone() -> None:
    for path in ("constraints.txt", "benchmarks/peers-constraints.txt"):
        lines = (ROOT / path).read_text().splitlines()
        assert lines
        assert not [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.+!-]+", line)]
