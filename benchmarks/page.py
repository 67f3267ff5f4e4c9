"""`python -m benchmarks.page`: docs/benchmarks.md from results.json. Every number on the page is a stored one."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.bounds import bound
from benchmarks.table import BENCH, met

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
PACKAGES = ("numpy", "scipy", "numba", "vowpalwabbit", "vw-estimators")

INTRODUCTION = """# Benchmarks

Made by `make bench` from what it measured; `python -m benchmarks ROW ...` measures single rows anew. Both sides of a
row run by turns, in the same run; numbers are medians over the repeats, the spread is the smallest and the largest
ratio among them. The ratio is ours over the peer's, and the bar is on the ratio unless it says gap (the peer's number
less ours) or value (our number). Libraries other than VW run in a process of an environment of their
own, `.venv-peers`; one that could not be installed is named at the end.

The C++ reference is `benchmarks/reference.cpp`, compiled on the spot with `-O3 -march=native -ffast-math`: the same
replay-Adam, which makes the same decisions until rounding parts them, and the same objective in one pass over the rows.
It knows one kind of settings, checks next to nothing of what comes in and, called every round, is handed an address
where ours is handed an array.
"""


def about() -> dict[str, Any]:
    """The machine and the versions, as they are stored with the results."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    versions |= peers.versions()
    cpu = platform.processor()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "packages": versions}


def short(value: float) -> str:
    return f"{value:,.0f}" if math.fabs(value) >= 100 else f"{value:.3g}"


def spread(found: Mapping[str, Any]) -> str:
    return f"{short(found['low'])}–{short(found['high'])}"


def rendered(results: Mapping[str, Any]) -> str:
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    yield INTRODUCTION
    rows = {name: bench for name, bench in BENCH.items() if name in results}
    if "about" in results:
        yield _machine(results["about"], sorted({results[name]["date"] for name in rows if "date" in results[name]}))
    for group, names in groupby(rows, key=lambda name: rows[name].group):
        yield f"\n## {group}\n"
        yield "| row | what | o2pl | peer | | unit | ratio | spread | bar | |"
        yield "|---|---|---|---|---|---|---|---|---|---|"
        for name in names:
            if "ratio" in results[name]:
                yield _row(name, results[name])
    noted = [name for name in rows if results[name].get("note") and not rows[name].bar]
    if noted:
        yield "\n## Notes\n"
        for name in noted:
            yield f"- `{name}`: {results[name]['note']}"
    missed = [name for name in rows if met(rows[name].bar, results[name]) is False]
    if missed:
        yield "\n## Bars that are missed\n"
        for name in missed:
            yield f"- `{name}`: {_shortfall(name, results[name])}. {bound(name, results)}".rstrip()
    skipped = [name for name in rows if "skipped" in results[name]]
    if skipped:
        yield "\n## Not measured here\n"
        for name in skipped:
            yield f"- `{name}`: {results[name]['skipped']}"


def _machine(found: Mapping[str, Any], dates: list[str]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    when = f", {dates[0]}" if len(dates) == 1 else f", {dates[0]} to {dates[-1]}" if dates else ""
    return f"Measured on {found['cores']} cores of {found['cpu']}{when}; Python {found['python']}, {versions}."


def _row(name: str, found: Mapping[str, Any]) -> str:
    bench = BENCH[name]
    verdict = {True: "met", False: "**missed**", None: ""}[met(bench.bar, found)]
    numbers = [short(found["o2pl"]), short(found["peer"]), bench.against, found["unit"]]
    cells = [f"`{name}`", bench.what, *numbers, short(found["ratio"]), spread(found), bench.bar, verdict]
    return f"| {' | '.join(cells)} |"


def _shortfall(name: str, found: Mapping[str, Any]) -> str:
    bar = BENCH[name].bar
    if bar.startswith("gap"):
        return f"the gap is {found['peer'] - found['o2pl']:.4f}, the bar {bar.removeprefix('gap ')}"
    if bar.startswith("value"):
        return f"{short(found['o2pl'])} {found['unit']}, the bar {bar.removeprefix('value ')}"
    limit = float(bar.split()[1])
    return f"{short(found['ratio'])} where the bar is {bar}, off by a factor of {_factor(found['ratio'], limit):.2f}"


def _factor(ratio: float, limit: float) -> float:
    return max(ratio / limit, limit / ratio)


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def write() -> None:
    PAGE.write_text(rendered(stored()))


if __name__ == "__main__":
    write()
