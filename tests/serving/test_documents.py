"""What the documents say to type against a running service is typed against one: `bash`, `py` and `js` blocks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.serving.clients import Server, server
from tests.serving.node import run_node

from o2pl.serving.settings import Kind, Settings, changed
from o2pl.serving.store import Store

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["service.md", "from-personalizer.md", "from-vw.md", "how-to/feature-flags.md"]
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Server]:
    with server(tmp_path, "--no-trainer") as found:
        yield found


@pytest.mark.parametrize("name", PAGES)
def test_calls_and_commands_work_as_written(
    name: str, running: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    blocks = re.findall(r"```(bash|py|js)\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL)
    assert blocks
    for language, block in blocks:
        text = block.replace(ADDRESS, running.address)
        join_all(tmp_path)
        if language == "py":
            exec(compile(text, name, "exec"), {"KEY": running.write_key})
        elif language == "js":
            (tmp_path / "page.cjs").write_text(text)
            assert "eventId" in run_node(tmp_path / "page.cjs")
        else:
            _run(text, running, tmp_path)


def join_all(folder: Path) -> None:
    """Every decision gets its outcome, as a trainer would see to."""
    with Store.open(folder / "o2pl.sqlite") as store:
        for application in store.applications():
            store.add_outcomes(
                [
                    {"application_id": application.id, "decision_id": row.id, "reward": 1.0, "by_default": False,
                     "joined_at": row.decided_at}
                    for row in store.decisions_after(application.id)
                ]
            )  # fmt: skip


def _run(text: str, running: Server, folder: Path) -> None:
    """As a shell would in the folder of the store; `curl` fails where a call is refused."""
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    (commands / "o2pl").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m o2pl.cli "$@"\n')
    (commands / "curl").write_text(
        f'#!/bin/sh\nexec "{shutil.which("curl")}" --silent --show-error --fail-with-body "$@"\n'
    )
    for command in commands.iterdir():
        command.chmod(0o755)
    environment = {**os.environ, "KEY": running.write_key, "PATH": f"{commands}:{os.environ['PATH']}"}
    environment.pop("O2PL_DATABASE", None)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (text, done.stdout, done.stderr)


def test_every_setting_is_documented_with_its_default(running: Server) -> None:
    text = (DOCS / "service.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (`[^`]*`|\S+) \|", text, flags=re.MULTILINE))
    with running.client() as client:
        settings = client.get("/personalizer/v1.0/configurations/service").json()
    for name in settings.keys() - {"actions", "bounds", "randomState"}:  # said with the kinds, or of no use to read
        assert name in rows, name
        said = rows[name].strip("`")
        value = said if said[0].isalpha() and said != "null" else json.loads(said)
        assert changed(Settings(), {name: value}, Kind.RANKED) == Settings(), (name, said)


def test_what_is_said_to_be_open_is_open(running: Server) -> None:
    for path in ("/", "/health", "/ready", "/openapi.json"):
        assert httpx.get(running.address + path).status_code == 200
