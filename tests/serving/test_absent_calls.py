"""The published JavaScript clients run unmodified; calls that are not there name commands that work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serving.clients import Server, inside, server
from tests.serving.node import node

from o2pl.serving.absent_calls import ABSENT
from o2pl.serving.store import Store

PREFIX = "/personalizer/v1.0"
ACTIONS = [{"id": name, "features": [{"topic": name}]} for name in ("news", "sports")]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("server"), "--no-trainer") as found:
        yield found


def test_the_javascript_client_works_unchanged(real: Server) -> None:
    said = node("personalizer.cjs", real.address, real.write_key)
    assert said["answer"]["eventId"] == "javascript-1"
    assert said["answer"]["rewardActionId"] in ("news", "sports")
    ranking = {each["id"]: each["probability"] for each in said["answer"]["ranking"]}
    assert ranking == {"news": 0.5, "sports": 0.5, "music": 0}
    assert said["unknown"] == {"status": 404, "code": "ResourceNotFound"}
    assert said["bad"] == {"status": 400, "code": "InvalidRankRequest"}
    assert said["locked"] == {"status": 401, "code": "Unauthorized"}


def test_the_javascript_rest_client_works_unchanged(real: Server) -> None:
    said = node("personalizer_rest.cjs", real.address, real.write_key)
    statuses = {name: each["status"] for name, each in said.items()}
    absent = {"evaluations", "evaluate", "evaluation", "forgetEvaluation", "apply", "interactions", "observations"}
    assert {name for name, status in statuses.items() if status == 501} == absent
    for name in absent:
        assert said[name]["body"]["error"]["code"] == "OperationNotAllowed"
        assert "`o2pl " in said[name]["body"]["error"]["message"]
    done = {name: status for name, status in statuses.items() if name not in absent}
    assert done == {
        "rank": 201, "activate": 204, "reward": 204, "slots": 201, "slotsActivate": 204, "slotsReward": 204,
        "settings": 200, "putSettings": 200, "policy": 200, "putPolicy": 200, "resetPolicy": 200, "model": 404,
        "modelProperties": 200, "resetModel": 204, "logProperties": 200, "deleteLogs": 204, "noLog": 200,
    }  # fmt: skip
    with_id = {
        "activate",
        "reward",
        "slotsActivate",
        "slotsReward",
    }  # this client takes any answer of these as unexpected
    assert {name for name, each in said.items() if each["unexpected"]} - with_id <= absent | {"model"}
    assert said["putSettings"]["body"]["defaultReward"] == 0.25
    period = said["logProperties"]["body"]["dateRange"]
    assert "2020" < period["from"] <= period["to"]
    assert said["noLog"]["body"] == {"dateRange": {"from": None, "to": None}}


def test_every_absent_call_names_commands_that_work(tmp_path: Path) -> None:
    """On a store with a log of some hundred decisions, as `o2pl explain` and the rest find it."""
    commands: set[str] = set()
    with inside(tmp_path) as shop:
        for k in range(300):
            body = {"eventId": f"e{k}", "actions": ACTIONS, "contextFeatures": [{"user": k % 3}]}
            chosen = shop.client.post(f"{PREFIX}/rank", json=body).json()["rewardActionId"]
            value = float(k % 7 < (5 if chosen == "news" else 2))
            assert shop.client.post(f"{PREFIX}/events/e{k}/reward", json={"value": value}).status_code == 204
        for method, path in ABSENT:
            answer = shop.client.request(method, PREFIX + re.sub("{.*}", "one", path))
            assert (answer.status_code, answer.json()["error"]["code"]) == (501, "OperationNotAllowed"), path
            commands.update([" && ".join(re.findall("`(o2pl .*?)`", answer.json()["error"]["message"]))])
    assert len(commands) == 4
    _join(tmp_path)
    for line in sorted(commands, key=len):
        if "old.dsjson" in line:  # a log of the old service
            _run("o2pl export old.dsjson --app shop", tmp_path)
        for command in line.replace("EVENT", "e7").split(" && "):
            _run(command, tmp_path)


def _join(folder: Path) -> None:
    with Store.open(folder / "o2pl.sqlite") as store:
        rewards: dict[str, Any] = {row.event_id: row.value for row in store.rewards_after(1, 0)}
        store.add_outcomes(
            [
                {"application_id": 1, "decision_id": row.id, "reward": rewards[row.event_id], "by_default": False,
                 "joined_at": row.decided_at}
                for row in store.decisions_after(1)
            ]
        )  # fmt: skip


def _run(command: str, folder: Path) -> None:
    words = shlex.split(command)
    assert words[0] == "o2pl"
    done = subprocess.run(
        [sys.executable, "-m", "o2pl.cli", *words[1:]], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
