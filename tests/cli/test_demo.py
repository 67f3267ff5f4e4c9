from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from o2pl.cli import app, demo
from o2pl.demo import story


def test_it_prints_the_path_of_the_page_and_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(out: Path, say: demo.Steps) -> Path:
        say("1/4 learn")
        return out / "index.html"

    monkeypatch.setattr(story, "tell_story", tell)
    monkeypatch.setattr(demo, "missing_extra", lambda name: ["uvicorn"] if name == "serve" else [])
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"page: {tmp_path / 'index.html'}\n"
    assert "the decision service is skipped; to include it: pip install 'o2pl[serve]'" in done.stderr
    assert "1/4 learn (0.0 s)" in done.stderr


@pytest.mark.parametrize("terminal", [True, False])
def test_steps_are_shown_as_they_end(terminal: bool) -> None:
    screen = io.StringIO()
    with demo.Steps(Console(file=screen, force_terminal=terminal, color_system=None, width=80)) as steps:
        steps("first [one]")
        steps("second")
    text = screen.getvalue()
    assert "first [one] (0.0 s)" in text
    assert text.index("first") < text.index("second (0.0 s)")
    screen = io.StringIO()
    steps = demo.Steps(Console(file=screen))
    steps.__enter__()
    steps("never ended")
    steps.__exit__(ValueError, ValueError("no"), None)
    assert "never ended" not in screen.getvalue()


def test_make_runs_it() -> None:
    made = (Path(__file__).parents[2] / "Makefile").read_text()
    assert "o2pl demo --out out/demo" in made
    assert "o2pl-reproduction reproduce --quick --out out/reproduction" in made
