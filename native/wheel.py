"""The wheel of this checkout, with the compiled core: built once, installed into every environment that `make` makes.

    python native/wheel.py                         # builds it unless it is there; prints its path
    python native/wheel.py --install               # and installs it into this Python's environment, without its needs
    python native/wheel.py --install reproduction  # the same for the package in this folder
    python native/wheel.py --requirements dev      # prints what the package and these extras need, one a line

A wheel is keyed by a hash of its sources and this Python. Nothing but Python, a C++ compiler and pip is needed: pip
fetches the build tools.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHEELS = ROOT / "out" / "wheels"
TOOLS = ROOT / "out" / "build-tools"
COMPILERS = ("c++", "g++", "clang++", "clang-cl", "cl")


def sources(project: Path) -> list[Path]:
    """Everything that the project's wheel is made from."""
    found = [project / name for name in ("pyproject.toml", "README.md", "LICENSE") if (project / name).exists()]
    for folder in ("native", "src"):
        found += [path for path in (project / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(path for path in found if path.suffix not in (".so", ".pyd"))


def key(project: Path) -> str:
    """Return a hash of the sources and of what this Python needs."""
    digest = hashlib.sha256(f"{sysconfig.get_platform()} {sys.implementation.cache_tag}".encode())
    for path in sources(project):
        digest.update(path.relative_to(project).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def check_compiler() -> None:
    named = os.environ.get("CXX")
    if named is None and not any(shutil.which(name) for name in COMPILERS):
        sys.exit(
            "o2pl: found no C++ compiler, which building from source needs; expected g++ or clang++."
            " On Debian or Ubuntu: apt-get install g++; on macOS: xcode-select --install; on Windows:"
            " Visual Studio with its Clang; or name one: CXX=..."
        )


def tools() -> str:
    """Return a Python with the build tools. They stay, so that a later build compiles only what has changed."""
    needed: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    folder = TOOLS / hashlib.sha256(f"{sys.executable} {sys.version} {needed}".encode()).hexdigest()[:16]
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    made = folder / ".made"
    if not made.exists():
        venv.EnvBuilder(clear=True, with_pip=True).create(folder)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        more = ["cmake", "ninja"]
        subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), *needed, *more], check=True)
        made.touch()
    return str(python)


def wheel(project: Path) -> Path:
    """Return the wheel of these sources; build it if it is not there."""
    folder = WHEELS / project.relative_to(ROOT) / key(project)
    for found in folder.glob("*.whl"):
        return found
    if project == ROOT:
        check_compiler()
        print("o2pl: building the compiled core, once", file=sys.stderr, flush=True)
    work = folder.with_name(f"{folder.name}.{os.getpid()}")
    python = tools()
    path = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")])
    pip = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(work), str(project)], check=True, env={**os.environ, "PATH": path})
    for old in folder.parent.glob("*"):
        if old != work and any(old.glob("*.whl")):
            shutil.rmtree(old, ignore_errors=True)
    work.rename(folder)
    return next(folder.glob("*.whl"))


def install(project: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(wheel(project))], check=True)


def requirements(extras: list[str]) -> list[str]:
    """Return the requirements of the package with these extras, those of extras within extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: list[str] = [*project["dependencies"]]
    waiting, seen = [*extras], set[str]()
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for one in project["optional-dependencies"][extra]:
            own = re.fullmatch(r"o2pl\[([\w,]+)\]", one)
            if own:
                waiting += own[1].split(",")
            else:
                found.append(one)
    return sorted(set(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", nargs="?", default=".", help="folder of the package, from the root of the checkout")
    parser.add_argument("--install", action="store_true", help="install the wheel into this Python's environment")
    parser.add_argument("--requirements", metavar="EXTRAS", help="print the requirements with these extras, a,b,c")
    given = parser.parse_args()
    if given.requirements is not None:
        print("\n".join(requirements([each for each in given.requirements.split(",") if each])))
    elif given.install:
        install((ROOT / given.project).resolve())
    else:
        print(wheel((ROOT / given.project).resolve()))


if __name__ == "__main__":
    main()
