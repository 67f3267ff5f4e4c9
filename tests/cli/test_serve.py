"""`o2pl serve`, as it is typed."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from tests.serving.clients import RANK, key, server, start
from typer.testing import CliRunner

from o2pl.cli import app
from o2pl.serving.store import Store


def test_the_first_start_shows_keys_once_and_a_call_that_works(tmp_path: Path) -> None:
    with server(tmp_path, "--no-trainer") as first:
        said = first.output.read_text()
        words = shlex.split(said.partition("try it:")[2].partition("starting")[0].replace("\\\n", " "))
        body, header = words[words.index("-d") + 1], words[words.index("-H") + 1]
        assert header == f"Ocp-Apim-Subscription-Key: {first.write_key}"
        answer = httpx.post(words[2], content=body, headers=key(first.write_key), timeout=30)
        assert answer.status_code == 201
    with server(tmp_path, "--no-trainer") as second:
        assert second.write_key == ""
        said = second.output.read_text()
        assert first.write_key not in said
        line = said.partition("try it:")[2].partition("starting")[0]
        typed = subprocess.run(
            ["sh", "-c", line],
            env={**os.environ, "O2PL_KEY": first.write_key},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "rewardActionId" in typed.stdout, typed.stdout  # as it is typed, with the variable
        again = httpx.post(f"{second.address}{RANK}", content=body, headers=key(first.write_key), timeout=30)
        assert again.status_code == 201
    with Store.open(tmp_path / "o2pl.sqlite") as store:
        assert [application.name for application in store.applications()] == ["default"]
        assert len(store.decisions_after(1)) == 3


def test_it_learns_without_being_told_how(tmp_path: Path) -> None:
    with server(tmp_path) as real, real.client() as client:
        actions = [{"id": "good"}, {"id": "bad"}]
        until, version = time.monotonic() + 300, 0
        while version == 0 and time.monotonic() < until:
            decided = client.post("/decide/batch", json={"decisions": [{"actions": actions}] * 20}).json()["decisions"]
            events = [(each["decision"]["eventId"], each["decision"]["action"] == "good") for each in decided]
            rewards = [{"eventId": event, "value": float(good)} for event, good in events]
            assert client.post("/reward/batch", json={"rewards": rewards}).status_code == 200
            time.sleep(0.5)
            version = client.get("/personalizer/v1.0/model/properties").json()["version"]
        answer = client.post("/decide", json={"actions": actions}).json()
    assert version > 0
    assert answer["modelVersion"] > 0
    assert answer["probabilities"]["good"] > 0.6


def test_a_port_in_use_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        arguments = ["serve", "--port", str(taken.getsockname()[1]), "--database", str(tmp_path / "o2pl.sqlite")]
        done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "Choose a free port" in done.output
    assert not (tmp_path / "o2pl.sqlite").exists()


def test_a_database_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["serve", "--port", "0", "--database", str(tmp_path / "no" / "o2pl.sqlite")])
    assert done.exit_code == 2
    assert "found no folder" in done.output


def test_an_interrupt_is_a_clean_stop(tmp_path: Path) -> None:
    with server(tmp_path, "--no-trainer") as real:
        real.process.send_signal(2)
        assert real.process.wait(20) in (0, -2, 130)
    lines = [json.loads(line) for line in real.errors.read_text().splitlines()]
    assert lines[-1]["message"].startswith("Finished server process")


def test_help_says_what_there_is() -> None:
    done = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"})
    for option in ("--host", "--port", "--database", "--no-trainer", "--guard", "--rate-limit"):
        assert option in done.output


@pytest.mark.parametrize("option", ["--host"])
def test_hosts_that_do_not_exist_are_said(option: str, tmp_path: Path) -> None:
    process, output, errors = start(tmp_path, option, "no.such.host.invalid", "--no-trainer")
    assert process.wait(60) == 2
    assert "cannot listen on" in errors.read_text()
    assert not output.read_text()
