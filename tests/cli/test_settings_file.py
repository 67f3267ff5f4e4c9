"""Flags, the environment and a file say the same things, in this order; nothing unknown is passed over."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.serving.clients import server
from typer.main import get_command
from typer.testing import CliRunner

from o2pl.cli import app
from o2pl.cli.settings_file import COMMANDS


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """What `o2pl serve` would run with: settings by name."""
    found: dict[str, Any] = {}

    def note(
        store: Any, listening: Any, database: str, trainer: Any, rate: float, body: int, *rest: Any, **more: Any
    ) -> None:
        found.update(database=database, trainer=trainer, rate=rate, body=body, log_calls=rest[1])
        found["address"] = listening.getsockname()
        store.close()

    monkeypatch.setattr("o2pl.serving.server.run", note)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("O2PL_DATABASE", raising=False)

    def run(*arguments: str, **environment: str) -> dict[str, Any]:
        found.clear()
        done = CliRunner().invoke(app, ["serve", "--port", "0", *arguments], env=environment)
        found["code"], found["output"] = done.exit_code, done.output
        return dict(found)

    return run


FILE = """
database = "from_file.sqlite"
[serve]
host = "127.0.0.2"
rate-limit = 70
max-body = 2048
log-calls = true
[train]
guard = true
state = "state"
"""


def test_flags_come_before_the_environment_and_that_before_the_file(served: Any, tmp_path: Path) -> None:
    path = tmp_path / "o2pl.toml"
    path.write_text(FILE)
    only = served("--config", str(path))
    assert (only["code"], only["rate"], only["body"], only["log_calls"]) == (0, 70.0, 2048, True), only["output"]
    assert only["address"][0] == "127.0.0.2"
    assert only["database"] == "from_file.sqlite"
    assert only["trainer"] == ["train", "--follow", "--config", str(path)]
    variables = {"O2PL_CONFIG": str(path), "O2PL_SERVE_RATE_LIMIT": "80", "O2PL_DATABASE": "from_variable.sqlite"}
    both = served(**variables)
    assert (both["rate"], both["body"], both["database"]) == (80.0, 2048, "from_variable.sqlite")
    three = served("--rate-limit", "90", "--database", "from_flag.sqlite", "--no-trainer", **variables)
    assert (three["rate"], three["body"], three["database"]) == (90.0, 2048, "from_flag.sqlite")
    assert three["trainer"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serve]\nrate_limit = 5", "found 'rate_limit', expected 'rate-limit'"),
        ("[server]\nport = 5", "found 'server'"),
        ("port = 5", "found 'port'"),
        ("serve = 5", "expected a table"),
        ("[serve]\nport = 'many'", "valid integer"),
        ("[serve]\nport = true", "True is not a single value"),
        ("[serve]\nguard = 1", "1 is not true or false"),
        ("[serve]\nport = 70000", "65535"),
        ("[train]\nfolow = true", "found 'folow'"),  # read by serve's trainer
        ("[serve", "is not TOML"),
    ],
)
def test_what_a_file_says_wrongly_is_an_error_that_names_it(served: Any, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "o2pl.toml"
    path.write_text(text)
    done = served("--config", str(path))
    assert done["code"] == 2
    flat = " ".join(done["output"].split())
    assert "o2pl.toml" in flat.replace(" ", "")
    assert said in flat
    assert not list(tmp_path.glob("*.sqlite"))


def test_a_file_that_is_not_there_is_said(served: Any) -> None:
    assert "found no file 'nothing.toml'" in served("--config", "nothing.toml")["output"]


def test_the_help_names_every_variable() -> None:
    group: Any = get_command(app)
    for name in COMMANDS:
        text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "300"}).output
        for option in group.get_command(None, name).params:
            if option.name == "database":
                assert "O2PL_DATABASE" in text
            elif option.name not in ("help", "config"):
                assert f"O2PL_{name.upper()}_{option.name.upper()}" in text
        assert "O2PL_CONFIG" in text


def test_the_trainer_of_a_server_reads_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "o2pl.toml"
    path.write_text(f'[train]\nstate = "{tmp_path / "elsewhere"}"\n')
    with server(tmp_path, "--config", str(path)) as real, real.client() as client:
        event = client.post("/decide", json={"actions": [{"id": "a"}, {"id": "b"}]}).json()["eventId"]
        assert client.post("/reward", json={"eventId": event, "value": 1}).status_code == 204
        end = time.monotonic() + 120
        while "published a model" not in real.errors.read_text():
            assert time.monotonic() < end, real.errors.read_text()
            time.sleep(0.1)
    assert list((tmp_path / "elsewhere").iterdir())  # written when it stops
    assert not list(tmp_path.glob("*.trainer"))
