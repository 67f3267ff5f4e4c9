from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from toy_study import STUDY
from typer.testing import CliRunner

from o2pl import cli
from o2pl.experiments import reproduction, studies
from o2pl.experiments.engines import Local
from o2pl.experiments.report import build


class Page(HTMLParser):
    """Collects what a reader's browser would load, and the ids that links may point at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "src":
                self.sources.append(str(value))
            if name == "href":
                self.links.append(str(value))
            if name == "id":
                self.ids.add(str(value))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reproduction.reproduce(tmp_path, studies=[STUDY], engine=Local(1))
    return tmp_path


def test_summary_holds_numbers_and_computed_verdicts(folder: Path) -> None:
    found = json.loads((folder / "summary.json").read_text())
    by_id = {claim["id"]: claim for claim in found["claims"]}
    assert by_id["toy/large"]["verdict"] == "reproduced"
    assert by_id["toy/set"]["verdict"] == "reproduced under conditions"
    assert by_id["toy/small"]["verdict"] == "not reproduced"
    assert by_id["toy/nothing"] == by_id["toy/nothing"] | {"measured": None, "verdict": "not reproduced"}
    assert isinstance(by_id["toy/large"]["measured"], float)
    assert by_id["toy/large"]["experiment"] == "toy"
    assert found["made"]["size"] == "quick"
    assert found["made"]["seeds"] == "toy 1"
    listed = (folder / "claims.md").read_text()
    assert all(claim["claim"] in listed and claim["verdict"] in listed for claim in found["claims"])
    assert "(figures/toy-values.png)" in listed


def test_the_page_stands_alone(folder: Path) -> None:
    text = (folder / "index.html").read_text()
    page = Page(text)
    assert len(page.sources) == 1
    assert page.sources[0].startswith("data:image/png;base64,")
    assert page.links
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not re.search(r"https?://", text)
    assert "Squares add up &lt;to much&gt;." in text
    assert "all 4 claims" in text
    assert text.count("seeds &amp; all") == 1  # conditions stand once, numbered
    assert {path.name for path in (folder / "figures").iterdir()} == {"toy-values.png", "toy-values.svg"}


def test_the_report_is_made_of_stored_rows_alone(folder: Path, log: Path) -> None:
    before = (folder / "index.html").read_bytes(), (folder / "summary.json").read_bytes()
    for path in (folder / "index.html", folder / "summary.json"):
        path.unlink()
    build(folder, [STUDY])
    assert ((folder / "index.html").read_bytes(), (folder / "summary.json").read_bytes()) == before
    assert not log.exists()  # nothing was computed


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (reproduction, studies):
        monkeypatch.setattr(module, "STUDIES", (STUDY,))
    out = str(tmp_path / "out")
    ran = CliRunner().invoke(cli.app, ["reproduce", "--quick", "--out", out, "--workers", "1"])
    assert ran.exit_code == 0, ran.output
    assert "4 claims: 1 reproduced, 1 reproduced under conditions, 2 not reproduced" in ran.output
    assert "index.html\nthis was the small size" in ran.output
    again = CliRunner().invoke(cli.app, ["report", out])
    assert again.exit_code == 0, again.output
    assert "not reproduced" in again.output
    assert "small size" not in again.output  # it cannot know, and must not say so of a full run
    missing = CliRunner().invoke(cli.app, ["report", str(tmp_path / "nowhere")])
    assert missing.exit_code == 2
    assert "expected one that `o2pl reproduce` has filled" in missing.output
