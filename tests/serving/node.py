"""Scripts that run the published JavaScript clients, with the machine's Node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

MODULES = Path(__file__).parents[2] / ".venv-javascript" / "node_modules"


def node(script: str, *arguments: str) -> Any:
    """Run `javascript/SCRIPT`; what it prints, parsed."""
    return json.loads(run_node(Path(__file__).with_name("javascript") / script, *arguments))


def run_node(path: Path, *arguments: str) -> str:
    """Run a script in the current folder; what it prints. Skips where Node or the clients are missing."""
    command = shutil.which("node")
    if command is None:
        pytest.skip("there is no Node on this machine")
    if not MODULES.with_name(".made").exists():
        pytest.skip("the JavaScript clients are not installed: `make clients`")
    done = subprocess.run(
        [command, str(path), *arguments], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "NODE_PATH": str(MODULES)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
