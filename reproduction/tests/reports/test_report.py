from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from toy_study import STUDY
from typer.testing import CliRunner

from o2pl.errors import InvalidInput
from o2pl.simulation.engines import Local
from o2pl.simulation.store import results
from o2pl_reproduction import cli, registry, reproduction
from o2pl_reproduction.reports.report import build, claim_json, claim_of, publish, read_made, write_made


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
    verdicts = {name.removeprefix("toy/"): claim["verdict"] for name, claim in by_id.items()}
    assert verdicts == {
        "large": "holds as stated",
        "set": "holds for our recipe, not for the paper's",
        "weak": "holds in direction, weaker",
        "small": "does not hold",
        "nothing": "undecided",
        "few": "our own question: undecided",
    }
    assert found["counts"]["does not hold"] == 1
    assert found["counts"]["matches, does not outperform"] == 0
    assert by_id["toy/nothing"] == by_id["toy/nothing"] | {"measured": None, "interval": [None, None]}
    assert by_id["toy/few"]["interval"] == [None, None]
    assert by_id["toy/few"]["method"] == "1 seed: too few for an interval"
    assert by_id["toy/few"]["bar"] == {"sense": ">", "numbers": [0.0], "source": "our prototype's number"}
    assert by_id["toy/large"]["interval"] == [by_id["toy/large"]["measured"]] * 2
    assert found["tables"] == {"toy": [{"rows": str(len(results(folder, "toy")))}]}
    assert isinstance(by_id["toy/large"]["measured"], float)
    assert by_id["toy/large"]["experiment"] == "toy"
    assert found["made"]["toy"]["size"] == "quick"
    assert (found["made"]["toy"]["seeds"], found["made"]["toy"]["rows"]) == (1, True)
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
    assert "6 claims." in text
    assert text.count("seeds &amp; all") == 1  # conditions stand once, numbered
    assert text.count("<b>1</b>") == 6  # a tile for each verdict that a claim has
    assert "our prototype's number" in text
    assert {path.name for path in (folder / "figures").iterdir()} == {"toy-values.png", "toy-values.svg"}


def test_the_report_is_made_of_stored_rows_alone(folder: Path, log: Path) -> None:
    before = (folder / "index.html").read_bytes(), (folder / "summary.json").read_bytes()
    for path in (folder / "index.html", folder / "summary.json"):
        path.unlink()
    build(folder, [STUDY])
    assert ((folder / "index.html").read_bytes(), (folder / "summary.json").read_bytes()) == before
    assert not log.exists()  # nothing was computed


def test_without_rows_what_was_found_before_is_kept(folder: Path) -> None:
    before = json.loads((folder / "summary.json").read_text())
    (folder / "toy.parquet").unlink()
    (section,) = build(folder, [STUDY])
    assert not section.has_rows
    after = json.loads((folder / "summary.json").read_text())
    assert after["claims"] == before["claims"]
    assert after["tables"] == before["tables"]
    assert after["made"]["toy"]["rows"] is False
    assert list(section.pictures) == ["values"]
    for name in ("claims.md", "index.html"):
        assert "The rows of this study are not stored here yet" in (folder / name).read_text()


def test_a_stored_claim_is_judged_again(folder: Path) -> None:
    for claim in build(folder, [STUDY])[0].claims:
        same = claim_of(json.loads(json.dumps(claim_json(claim))))
        assert claim_json(same) == claim_json(claim)
    stored = claim_json(claim) | {"measured": 2.0, "interval": [1.0, 3.0], "verdict": "typed in"}
    assert claim_of(stored).verdict == "our own question: yes"


def test_rows_are_published_compactly(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "docs"
    write_made(folder, read_made(folder) | {"another": {"size": "full"}})
    publish(folder, target, [STUDY])
    assert str(results(target, "toy").to_pydict()) == str(results(folder, "toy").to_pydict())  # NaN among them
    assert (target / "claims.md").read_text() == (folder / "claims.md").read_text()
    assert list(read_made(target)) == ["toy"]
    with pytest.raises(InvalidInput, match="found the rows of no study"):
        publish(tmp_path / "nowhere", target, [STUDY])


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (reproduction, registry):
        monkeypatch.setattr(module, "STUDIES", (STUDY,))
    out = str(tmp_path / "out")
    ran = CliRunner().invoke(cli.app, ["reproduce", "--quick", "--out", out, "--workers", "1"])
    assert ran.exit_code == 0, ran.output
    assert "6 claims: 1 holds as stated, 1 holds in direction, weaker, 1 holds for our recipe" in ran.output
    assert "index.html\nthis was the small size" in ran.output
    again = CliRunner().invoke(cli.app, ["report", out])
    assert again.exit_code == 0, again.output
    assert "does not hold" in again.output
    assert "small size" not in again.output  # it cannot know, and must not say so of a full run
    missing = CliRunner().invoke(cli.app, ["report", str(tmp_path / "nowhere")])
    assert missing.exit_code == 2
    assert "expected the results folder of `o2pl-reproduction reproduce`" in missing.output
