"""The compose file: its names resolve, and its settings are those of `o2pl serve`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from typer.main import get_command

from o2pl.cli import app

DEPLOY = Path(__file__).parents[2] / "deploy"
# Keys of the Compose specification that this file may use.
SERVICE = {
    "image", "build", "environment", "secrets", "volumes", "healthcheck", "restart", "entrypoint", "command", "ports",
    "depends_on", "read_only", "tmpfs", "cap_drop", "security_opt", "stop_grace_period",
}  # fmt: skip


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def test_every_name_of_the_compose_file_is_there() -> None:
    found = compose()
    assert set(found) == {"name", "services", "secrets", "volumes"}
    for service in found["services"].values():
        assert set(service) <= SERVICE
        assert set(service["secrets"]) <= set(found["secrets"])
        assert {each.partition(":")[0] for each in service.get("volumes", ())} <= set(found["volumes"])
        for name, needed in service.get("depends_on", {}).items():
            assert needed == {"condition": "service_healthy"}
            own = found["services"][name]
            assert (
                "healthcheck" in own or "HEALTHCHECK" in (DEPLOY / own["build"]["dockerfile"].split("/")[1]).read_text()
            )
        if "build" in service:
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    published = [each for service in found["services"].values() for each in service.get("ports", ())]
    assert all(each.startswith("127.0.0.1:") for each in published)  # TLS is the proxy's
    assert len({each.split(":")[1] for each in published}) == len(published)


def test_its_variables_are_options() -> None:
    group: Any = get_command(app)
    known = {f"O2PL_SERVE_{each.name.upper()}" for each in group.get_command(None, "serve").params}
    for name, service in compose()["services"].items():
        if name != "database":
            assert set(service["environment"]) <= known
            assert re.findall(r"exec (o2pl \w+)$", service["command"][0]) == ["o2pl serve"]


def test_the_password_is_in_no_file_of_the_source() -> None:
    assert "db-password" in (DEPLOY.parent / ".gitignore").read_text()
    assert not re.search(r"POSTGRES_PASSWORD:|o2pl:[a-z0-9]+@", (DEPLOY / "compose.yaml").read_text())
