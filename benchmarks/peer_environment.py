"""`python benchmarks/peer_environment.py FOLDER`: an environment with the libraries that the bench runs beside ours.

Each library is installed on its own, in the versions of `peers-constraints.txt`, so that one that does not install
leaves the others alone; FOLDER/peers.json says of each why it is missing, or nothing. Any Python of 3.11 or newer
runs this; nothing of o2pl is needed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

CONSTRAINTS = Path(__file__).with_name("peers-constraints.txt")
REASONS = "peers.json"

# What pip is asked for, call by call.
INSTALLS: dict[str, tuple[tuple[str, ...], ...]] = {
    "mabwiser": (("mabwiser",),),
    "river": (("river",),),
    # There are no wheels of it for every Python: it is compiled here, with the Cython of the constraints.
    "contextualbandits": (
        ("cython", "numpy", "scipy", "setuptools", "wheel"),
        ("--no-build-isolation", "contextualbandits"),
    ),
    "coba": (("coba", "numpy"),),
    "vw-estimators": (("scipy", "numpy"), ("--no-deps", "vw-estimators")),
    # Its last release asks for versions of 2022 and for Python below 3.11; what the bench uses of it works without.
    # Of its requirements torch is left out (see `peer_loops`), and what it never imports.
    "obp": (
        ("matplotlib", "numpy", "pandas", "pyyaml", "scikit-learn", "scipy", "seaborn", "tqdm"),
        ("--no-deps", "--ignore-requires-python", "obp"),
    ),
}


def install(python: str, name: str, constraints: Path = CONSTRAINTS) -> str:
    """Why it is missing; empty where it is not."""
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(constraints)]
    for wanted in INSTALLS[name]:
        done = subprocess.run([*pip, *wanted], capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line.strip() for line in done.stderr.splitlines()]
            errors = [line for line in lines if "error" in line.lower()] or lines or ["pip said nothing"]
            return errors[0]
    return ""


def make(folder: Path) -> dict[str, str]:
    venv.EnvBuilder(clear=True, with_pip=True).create(folder)
    python = str(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    reasons = {}
    for name in INSTALLS:
        reasons[name] = install(python, name)
        print(f"{name}: {reasons[name] or 'installed'}", flush=True)
    (folder / REASONS).write_text(json.dumps(reasons, indent=2) + "\n")
    return reasons


if __name__ == "__main__":
    make(Path(sys.argv[1]))
