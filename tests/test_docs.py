"""The documents' Python blocks run, one after another, as a reader would run them."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app
from o2pl.encode.schema import COMMON, SHARED
from o2pl.engine.change import Change
from o2pl.engine.pending import PENDING
from o2pl.fitting.choice import FEW
from o2pl.fitting.large_logs import SAMPLE
from o2pl.fitting.ray_passes import STRIPE
from o2pl.policies.sampling import LEAST_VARIANCE
from o2pl.serving.application_learner import _EXPLORATION, HISTORY
from o2pl.serving.personalizer_api import MOST_ACTIONS, MOST_SLOTS
from o2pl.serving.policy_guard import _EPOCH
from o2pl.serving.settings import Settings

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


TUTORIALS = [path for path in DOCUMENTS if path.parent.name == "tutorials" and path.stem != "index"]


def _document(path: Path) -> object:
    needs = pytest.mark.jax if path.name == "neural.md" else ()
    return pytest.param(path, id=str(path.relative_to(ROOT)), marks=needs)


@pytest.mark.parametrize("path", [_document(path) for path in DOCUMENTS])
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


def test_numbers_are_those_of_the_code() -> None:
    change, explored = Change(), Settings().exploration_percentage
    assert explored is None
    contexts = np.zeros((100, 20))
    log = o2pl.O2PL(2, policy="linear").fit(contexts, [0, 1] * 50, [0.0, 1.0] * 50, [0.5] * 100).log_
    columns = (log.contexts, log.actions, log.rewards, log.propensities, log.ids)
    a_row = sum(column.nbytes for column in columns if column is not None) // 100
    said = {
        "how-to/delayed-rewards.md": [f"the last {PENDING:,} decisions"],
        "how-to/drift.md": [f"half-life {change.memory}", f"a factor of e^{change.threshold:g}", f"{change.kept} rows"],
        "bandit.md": [f"half-life {change.memory}", f"{change.kept} rows", f"{math.sqrt(LEAST_VARIANCE):g}²"],
        "how-to/choose-a-learner.md": [f"{a_row} bytes per row with 20 features"],
        "how-to/prune-a-log.md": [f"{a_row} bytes per row with 20 features", f"newest {HISTORY:,} outcomes"],
        "how-to/prices.md": [f"{o2pl.ContinuousBandit().cells} steps"],
        "how-to/words.md": [f"2^{o2pl.Hashed().bits} features"],
        "how-to/data-frames.md": [f"the {COMMON} most common words", f"or {SHARED} if"],
        "how-to/explore.md": [f"It is {_EXPLORATION:.0%} unless".replace("%", " %")],
        "service.md": [f"newest {HISTORY:,} outcomes", f"epochs of {_EPOCH:,}"],
        "from-personalizer.md": [f"{MOST_ACTIONS} actions and {MOST_SLOTS} slots"],
        "logs.md": [f"{FEW:,} rows or more"],
        "scale.md": [f"a sample of {SAMPLE:,} rows", f"stripes of {STRIPE:,} rows"],
        "concepts.md": [f"1 in the paper, {o2pl.O2PL().penalty:g} by default"],
    }
    for page, phrases in said.items():
        text = " ".join((ROOT / "docs" / page).read_text().split())
        for phrase in phrases:
            assert phrase in text, (page, phrase)


KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Known limits"}  # the last is ours


def test_the_changelog_is_for_users_and_under_a_page() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert versions[0].startswith("Unreleased\n")
    for version in versions[1:]:
        assert re.match(r"\d+\.\d+\.\d+ – (\d{4}-\d\d-\d\d|not yet released)\n", version), version[:40]
    for version in versions:
        assert set(re.findall(r"^### (.+)$", version, flags=re.MULTILINE)) <= KINDS
        assert len(version.splitlines()) <= 50, "history stays in git: a version says what its users notice"


def test_settings_of_the_repository_are_yaml_that_names_what_there_is() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {"ruff", "ruff-format", "mypy", "clang-format"} <= {hook["id"] for hook in hooks}
    for path in (ROOT / ".github").rglob("*.yml"):
        assert yaml.safe_load(path.read_text()), path.name
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    called = release["wheels"]["uses"].removeprefix("./")
    assert "workflow_call" in yaml.safe_load((ROOT / called).read_text())[True]  # YAML takes `on` for a truth value


def test_links_lead_somewhere() -> None:
    """Files and headings, by the addresses that the repository's pages give them; `make docs` checks the site's."""
    names = ["reference/python.md", "reference/command-line.md", "reference/settings.md"]
    made = {ROOT / "docs" / name for name in [*names, "architecture.md", "contributing.md", "changelog.md"]}
    for path in [*DOCUMENTS, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]:
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
