"""The documentation as a site: it builds without a warning, and leaves out nothing that a user can type."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
import typer
import yaml

import o2pl

ROOT = Path(__file__).parents[1]
CHROMIUM = Path("/usr/bin/chromium")


def module_at(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


HOOKS: Any = module_at("docs/site_hooks.py")
SETTINGS: Any = module_at("docs/site_settings.py")
REPRODUCTION: Any = module_at("docs/site_reproduction.py")


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
    written -= {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs/reproduction").rglob("*.md")}
    made = {uri for uri in HOOKS.generated() if uri.endswith(".md")}
    assert written | made | {"reference/settings.md", REPRODUCTION.FIRST} == listed


def test_the_reproduction_has_a_page_for_each_study(site: Path) -> None:
    claims = json.loads((ROOT / "docs/reproduction/summary.json").read_text())["claims"]
    first = (site / "reproduction/index.html").read_text()
    for name in {claim["experiment"] for claim in claims}:
        page = (site / f"reproduction/{name}.html").read_text()
        assert f'href="{name}.html"' in first
        assert '<div class="md-sidebar' in page
        assert "<summary>The numbers</summary>\n<p>|" not in page  # tables inside folded parts are tables
        assert page.count("<table>") >= 1
    assert not (site / "reproduction/claims.html").exists()
    assert 'href="reproduction/index.html"' in (site / "index.html").read_text()


def test_tables_of_studies_are_those_of_the_summary() -> None:
    shown = 0
    for path in (ROOT / "docs").rglob("*.md"):
        text = path.read_text()
        assert REPRODUCTION.with_tables(text) == text, f"{path.name}: run python docs/site_reproduction.py"
        shown += text.count("<!-- table of ")
    assert shown >= 3
    stale = "<!-- table of schedules -->\n| old |\n<!-- end of table -->"
    assert REPRODUCTION.with_tables(stale).count("| logistic |") == 1


def test_a_long_study_shows_its_first_figure_and_claims_and_folds_the_rest() -> None:
    claims = "".join(f"| claim {k} |\n" for k in range(REPRODUCTION.SHOWN + 2))
    head, figures = "Text.\n\n*size: full; seeds: 3*\n\n", "![a](figures/a.png)\n![b](figures/b.png)\n"
    made = REPRODUCTION.short(f"{head}| claim |\n|---|\n{claims}\n{figures}\nEnd.\n")
    shown, more, figures, run = made.split("<details>")
    assert shown.index("figures/a.png") < shown.index("| claim 0 |")
    assert f"| claim {REPRODUCTION.SHOWN} |" not in shown
    assert "<summary>2 more claims</summary>\n\n| claim |\n|---|\n" in more
    assert "figures/b.png" in figures
    assert "\nsize: full; seeds: 3\n" in run
    assert made.count("| claim ") == REPRODUCTION.SHOWN + 2 + 2


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_screen_and_results_are_short(site: Path, width: int) -> None:
    """In a real browser: nothing makes the page itself wider than the screen, and results fold within five screens."""
    if not CHROMIUM.exists():
        pytest.skip("there is no Chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    results = ["benchmarks", "capacity", *(f"reproduction/{path.stem}" for path in site.glob("reproduction/*.html"))]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": 844})
        for name in [*results, "index", "guide", "service", "reference/settings", "tutorials/price", "concepts"]:
            page.goto(f"file://{site / name}.html")
            size = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            assert size[0] <= width, name
            assert name not in results or size[1] <= 5 * 844, (name, size[1] / 844)
        page.goto(f"file://{site / 'benchmarks.html'}#the-service")
        page.wait_for_function("document.getElementById('the-service').open")  # an address opens its folded section
        if width < 1000:
            page.wait_for_function("document.querySelectorAll('.hint').length > 0")
        browser.close()


def test_sections_after_the_first_are_folded_and_keep_their_addresses() -> None:
    html = '<h1 id="a">A</h1><h2 id="b">B<a class="headerlink" href="#b">¶</a></h2><p>1</p><h2 id="c">C</h2><p>2</p>'
    folded = REPRODUCTION.folded(html)
    assert folded.endswith('<details class="section" id="c"><summary>C</summary><p>2</p></details>')
    assert '<h2 id="b">' in folded


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


def test_programs_that_read_find_every_page(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    addresses = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", text, flags=re.MULTILINE)
    assert [address for address in addresses if not (site / address).exists()] == []
    assert {"how-to/drift.html", "tutorials/price.html", "reference/settings.html"} <= set(addresses)
    assert "o2pl.Bandit(" in text


def test_the_reference_has_every_public_name_and_command(site: Path) -> None:
    python = (site / "reference/python.html").read_text()
    for name in HOOKS.public_names():
        assert f'id="o2pl.{name}"' in python, name
    settings = (site / "reference/settings.html").read_text()
    for name in [*SETTINGS.LEARNERS, *SETTINGS.PARTS]:
        for setting in inspect.signature(getattr(o2pl, name)).parameters:
            assert f"<code>{setting}</code>" in settings, (name, setting)
    commands = (site / "reference/command-line.html").read_text()
    for name in typer.main.get_command(HOOKS.app).commands:  # a group
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


def test_a_setting_without_a_description_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    class Half:
        """A part.

        Parameters
        ----------
        told
            What it does.
        """

        def __init__(self, told: int = 1, untold: int = 2) -> None: ...

    with pytest.raises(SystemExit, match=r"Half: found \['untold'\] in only one of"):
        SETTINGS.class_settings(Half)
    monkeypatch.setattr(
        SETTINGS, "Settings", type("Bare", (msgspec.Struct,), {"__annotations__": {"seed": int}, "seed": 0})
    )
    with pytest.raises(SystemExit, match=r"seed: found no description"):
        SETTINGS.service_table()
    monkeypatch.delitem(SETTINGS.VARIABLES, "O2PL_KEY")
    with pytest.raises(SystemExit, match=r"found no text for \['O2PL_KEY'\]"):
        SETTINGS.settings_reference()


def test_settings_that_several_learners_name_are_parsed() -> None:
    found = SETTINGS.described_parameters(inspect.getdoc(o2pl.O2PL) or "")
    assert found["p"] == found["delta"]
    assert "log_" not in found  # an attribute


def test_the_page_of_the_service_has_the_table_of_its_settings() -> None:
    assert SETTINGS.service_table() in (ROOT / "docs/service.md").read_text()


def test_the_settings_that_matter_have_their_defaults() -> None:
    """The short table of how-to/choose-a-learner.md."""
    text = (ROOT / "docs/how-to/choose-a-learner.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", text, flags=re.MULTILINE))
    defaults = {name: default.strip("`") for name, default, _ in SETTINGS.class_settings(o2pl.O2PL)}
    assert len(rows) >= 5
    assert rows.items() <= defaults.items()


def test_the_architecture_is_that_of_the_imports() -> None:
    """Where this fails: python docs/architecture_figure.py."""
    script: Any = module_at("docs/architecture_figure.py")
    page, picture = script.written()
    assert script.PAGE.read_text() == page
    assert script.PICTURE.read_text() == picture
    order, edges = script.parts(), script.imports()
    assert ("learners", "policies") in edges
    assert all(order.index(here) > order.index(there) for here, there in edges)
    drawn = script.reduced(edges)
    assert picture.count("<title>") == len(drawn)


def test_contributing_names_the_folders_in_their_order() -> None:
    script: Any = module_at("docs/architecture_figure.py")
    folders = [part for part in script.parts() if (ROOT / "src/o2pl" / part).is_dir()]
    assert f"`{' → '.join(folders)}`" in " ".join((ROOT / "CONTRIBUTING.md").read_text().split())


def test_the_table_of_where_things_are_is_that_of_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this fails: python docs/where_is.py."""
    script: Any = module_at("docs/where_is.py")
    assert script.PAGE.read_text() == script.written()
    assert len(script.ROWS) == len(dict(script.ROWS)) == 30
    with pytest.raises(SystemExit, match="found no file with 'Bandits', expected one"):
        script.file_of("Bandits")
    monkeypatch.setattr(script, "defined", lambda: {"Twice": [Path("a/one.py"), Path("b/two.py")]})
    with pytest.raises(SystemExit, match=r"found a/one\.py, b/two\.py with 'Twice', expected one"):
        script.file_of("Twice")
    assert script.file_of("b/Twice") == Path("b/two.py")


def test_what_follows_from_other_imports_is_not_drawn() -> None:
    script: Any = module_at("docs/architecture_figure.py")
    edges = {("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "d"), ("e", "d")}
    assert script.reduced(edges) == {("a", "b"), ("b", "c"), ("c", "d"), ("e", "d")}


def test_the_pictures_of_the_concepts_are_drawn_by_our_code(tmp_path: Path) -> None:
    script: Any = module_at("docs/concepts_figures.py")
    page = (ROOT / "docs/concepts.md").read_text()
    assert set(re.findall(r"images/([\w-]+)\.png", page)) == set(script.FIGURES)
    for name, draw in script.FIGURES.items():
        draw().savefig(tmp_path / f"{name}.png")
