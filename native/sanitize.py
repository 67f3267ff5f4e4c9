"""The tests of the compiled core, built under the address and undefined-behaviour sanitizers; needs Linux and GCC.

python native/sanitize.py [tests ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from wheel import ROOT, check_compiler, tools

OUT = ROOT / "out" / "sanitized"
FOLDERS = ("data", "encode", "engine", "features", "formats", "kernels", "objectives", "oracles", "policies", "theory")
FILES = ("test_core.py", "test_native.py", "test_special.py")
LITTLE = "tests/test_native.py::test_too_little_memory_is_an_error_and_no_abort"  # the sanitizers need more


def build() -> None:
    """Make a package of the sources and a sanitized core, under `OUT`."""
    check_compiler()
    path = os.pathsep.join([str(Path(tools()).parent), os.environ.get("PATH", "")])
    made = str(OUT / "build")
    options = ["-DO2PL_SANITIZE=ON", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
    configure = ["cmake", "-G", "Ninja", "-S", str(ROOT / "native"), "-B", made, *options]
    for command in (configure, ["cmake", "--build", made], ["cmake", "--install", made, "--prefix", str(OUT)]):
        subprocess.run(command, env={**os.environ, "CXX": "g++", "PATH": path}, check=True)
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "src" / "o2pl", OUT / "o2pl", ignore=ignored, dirs_exist_ok=True)


def main(tests: list[str]) -> int:
    build()
    given = tests or [f"tests/{name}" for name in (*FOLDERS, *FILES)]
    names = [f"-print-file-name=lib{kind}.so" for kind in ("asan", "ubsan")]
    found = [subprocess.run(["g++", name], capture_output=True, text=True, check=True).stdout.strip() for name in names]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(found),
        "PYTHONPATH": str(OUT),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself leaks at its end
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--deselect", LITTLE, *given]
    return subprocess.run(command, env=environment, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
