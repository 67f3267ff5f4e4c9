"""The documents' Python blocks run, one after another, as a reader would run them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from o2pl.cli import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, block in re.findall(r"```(python|sh)\n(.*?)```", path.read_text(), flags=re.DOTALL):
        if language == "python":
            exec(compile(block, str(path), "exec"), names)
        else:
            _run_commands(block)


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
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
