"""The documentation as a site: it builds without a warning, and leaves out nothing that a user can type."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
import yaml

import o2pl

ROOT = Path(__file__).parents[1]


def module_at(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


HOOKS: Any = module_at("docs/site_hooks.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def test_every_page_is_in_the_navigation() -> None:
    loader = type("Loader", (yaml.SafeLoader,), {})
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(), loader)
    listed = set(re.findall(r"[\w/-]+\.md", str(settings["nav"])))
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    written -= {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs/reproduction").rglob("README.md")}
    assert written | {uri for uri in HOOKS.generated() if uri.endswith(".md")} == listed


def test_the_site_is_whole_and_needs_no_network(site: Path) -> None:
    for path in site.rglob("*.html"):
        if path.name == "404.html":  # its addresses begin at the root of a server
            continue
        page = path.read_text()
        loaded = re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(https?:[^"]+)"', page)
        assert not loaded, f"{path.name} loads {loaded}"
        for target in re.findall(r'(?:src|href)="([^"#]+)', page):
            if ":" not in target:
                assert (path.parent / target).exists(), f"{path.name} leads to {target}"


def test_the_reference_has_every_public_name_and_command(site: Path) -> None:
    python = (site / "reference/python.html").read_text()
    for name in HOOKS.public_names():
        assert f'id="o2pl.{name}"' in python, name
    commands = (site / "reference/command-line.html").read_text()
    for name in typer.main.get_command(HOOKS.app).commands:  # type: ignore[attr-defined]  # a group
        assert f"o2pl {name}" in commands


def test_what_is_not_documented_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(o2pl, "__all__", [*o2pl.__all__, "Nameless"])
    monkeypatch.setattr(o2pl, "Nameless", type("Nameless", (), {"__doc__": None}), raising=False)
    with pytest.raises(SystemExit, match=r"found no docstring of \['Nameless'\]"):
        HOOKS.python_reference()
    monkeypatch.undo()
    app = typer.Typer()

    @app.command()
    def one(out: str = "a") -> None:
        """Does one thing."""

    @app.command()
    def other() -> None: ...

    monkeypatch.setattr(HOOKS, "app", app)
    with pytest.raises(SystemExit, match=r"o2pl one `--out`: found no help"):
        HOOKS.command_reference()


def test_the_architecture_is_that_of_the_imports() -> None:
    layers, counted = HOOKS.imports_between_parts()
    assert counted["learners", "policies"] > 5
    assert all(layers.index(here) > layers.index(there) for here, there in counted)
    assert set(layers) >= {part for pair in counted for part in pair}
    drawn = HOOKS.matrix(layers, counted)
    assert drawn.count("<circle") == len(counted)


def test_the_pictures_of_the_concepts_are_drawn_by_our_code(tmp_path: Path) -> None:
    script: Any = module_at("docs/concepts_figures.py")
    page = (ROOT / "docs/concepts.md").read_text()
    assert set(re.findall(r"images/([\w-]+)\.png", page)) == set(script.FIGURES)
    for name, draw in script.FIGURES.items():
        draw().savefig(tmp_path / f"{name}.png")
