"""The documents' Python blocks run, one after another, as a reader would run them."""

from __future__ import annotations

import re
import shlex
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from o2pl.cli import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


TUTORIALS = [path for path in DOCUMENTS if path.parent.name == "tutorials" and path.stem != "index"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    try:
        for language, block in re.findall(r"```(python|sh)\n(.*?)```", path.read_text(), flags=re.DOTALL):
            if language == "python":
                exec(compile(block, str(path), "exec"), names)
            else:
                _run_commands(block)
    finally:
        for each in names.values():
            if isinstance(each, subprocess.Popen) and each.poll() is None:  # a block before its end has failed
                each.terminate()
                each.communicate(timeout=20)
    if path in TUTORIALS:
        assert [each.name for each in tmp_path.glob("tutorial-*.png")] == [f"tutorial-{path.stem}.png"]


def _run_commands(block: str) -> None:
    """Lines that begin with `o2pl`."""
    for line in block.splitlines():
        if line.startswith("o2pl "):
            done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
            assert done.exit_code == 0, (line, done.output, done.exception)


def test_the_readme_example_is_short_and_learns(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)[0]
    assert len([line for line in block.splitlines() if line.strip()]) <= 15
    exec(block, {})
    first, last = (float(x) for x in re.findall(r"rounds (0\.\d+|1\.0+)", capsys.readouterr().out))
    assert last > first + 0.05
    assert last >= 0.85


def test_links_lead_somewhere() -> None:
    """Files and headings, by the addresses that the repository's pages give them; `make docs` checks the site's."""
    names = ["reference/python.md", "reference/command-line.md", "reference/settings.md"]
    made = {ROOT / "docs" / name for name in [*names, "architecture.md", "contributing.md", "changelog.md"]}
    for path in [*DOCUMENTS, ROOT / "CHANGELOG.md"]:
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", text):
            file = (path.parent / target).resolve() if target else path
            if file in made:
                continue
            assert file.exists(), f"{path.name} links to {target}"
            if heading and file.suffix == ".md":
                assert heading in _headings(file), f"{path.name} links to {target}#{heading}"


@lru_cache(maxsize=100)
def _headings(path: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = set()
    for title in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
        found.add(kept.replace(" ", "-"))
    return found


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_has_a_problem_a_figure_of_its_own_and_what_to_do_next(path: Path) -> None:
    text = path.read_text()
    problem = text.split("\n\n")[1]
    assert len(re.findall(r"[.?!](?:\s|$)", problem)) == 2, problem
    assert "\n## What to do next\n" in text
    (name,) = re.findall(r"\(\.\./images/([\w-]+\.png)\)", text)
    assert f'savefig("{name}"' in text
    assert (ROOT / "docs" / "images" / name).exists()
