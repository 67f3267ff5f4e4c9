from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from toy_experiment import TOY

from o2pl.simulation import sources


def names(files: list[Path]) -> set[str]:
    return {path.relative_to(sources._ROOT).as_posix() for path in files}


def test_what_every_experiment_depends_on() -> None:
    files = names(sources.shared_source_files())
    assert {"engine/engine.py", "objectives/pessimistic.py", "policies/softmax.py", "__init__.py"} <= files
    assert any(name.startswith("_core") and not name.endswith(".pyi") for name in files)  # the compiled core
    assert not [name for name in files if name.startswith(("serving/", "demo/", "simulation/store", "cli"))]


def test_an_experiment_depends_on_its_file_and_those_of_its_folder_that_it_imports() -> None:
    files = {path.name for path in sources.imported_sources(Path(__file__).with_name("test_engines.py"))}
    assert {"test_engines.py", "toy_experiment.py"} <= files
    assert files.isdisjoint({"test_sources.py", "test_runner.py"})


@pytest.mark.parametrize(
    ("edited", "differs"),
    [
        ("o2pl/engine/engine.py", True),
        ("o2pl/_core.so", True),
        ("o2pl/features/new.py", True),
        ("toys/run.py", True),
        ("toys/helping.py", True),
        ("o2pl/simulation/figures.py", False),
        ("o2pl/serving/trainer.py", False),
        ("o2pl/cli.py", False),
        ("o2pl/page.html", False),
    ],
)
def test_the_hash_changes_with_what_decides_and_with_nothing_else(
    edited: str, differs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "o2pl/engine/engine.py",
        "toys/helping.py",
        "o2pl/simulation/figures.py",
        "o2pl/serving/trainer.py",
        "o2pl/cli.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "toys/run.py").write_text("from helping import x\nfrom o2pl.simulation import figures\n")
    (tmp_path / "o2pl/features").mkdir()
    (tmp_path / "o2pl/_core.so").write_bytes(b"\x7fELF")
    monkeypatch.setattr(sources, "_ROOT", tmp_path / "o2pl")
    module = ModuleType("somewhere")
    module.__file__ = str(tmp_path / "toys/run.py")
    monkeypatch.setitem(sources.sys.modules, "somewhere", module)

    def run() -> None: ...

    run.__module__ = "somewhere"

    def found() -> str:
        sources._shared_sources.cache_clear()
        return sources.digest_of_sources(run)

    before: Any = found()
    assert found() == before
    with open(tmp_path / edited, "a") as file:
        file.write("y = 2\n")
    assert (found() != before) == differs
    shutil.rmtree(tmp_path)
    sources._shared_sources.cache_clear()


def test_a_function_without_a_file_depends_on_the_package_alone() -> None:
    names: dict[str, Any] = {"__name__": "builtins"}
    exec("def run(unit): ...", names)
    assert len(sources.digest_of_sources(names["run"])) == 20
    assert sources.digest_of_sources(names["run"]) != sources.digest_of_sources(TOY.run)
