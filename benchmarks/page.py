"""`python -m benchmarks.page`: docs/benchmarks.md from results.json. Every number on the page is a stored one."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import peers, readme_table, scale_page
from benchmarks.bars import MORE, misses
from benchmarks.bounds import bound
from benchmarks.measure import Bench
from benchmarks.table import BENCH, ELSEWHERE

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BUSY = 0.5  # cores that others keep busy before a run: above it, do not trust speeds
PACKAGES = ("numpy", "scipy", "vowpalwabbit", "vw-estimators")

INTRODUCTION = """# Benchmarks

Speed and mean reward of o2pl beside [Vowpal Wabbit](https://vowpalwabbit.org) (VW), a C++ reference and other bandit
libraries. The rows of the default learner come first: the learner as its constructor makes it.

- **How.** Both sides of a row run by turns, in the same run, on the same data. Numbers are medians over repeats; the
  spread is the smallest and the largest ratio among them. The ratio is ours divided by the peer's. Rates (per second)
  are better high, times and memory low. One thread each, unless a row says otherwise.
- **Mean reward.** Where both sides make decisions, the last column has the mean reward that each earned in the run
  that was timed. Each repeat is another world (another seed), the same for both sides.
- **Bars.** A bar is a limit on the ratio, unless it says value (our number) or gap (the peer's number less ours). "More
  reward" means a higher mean reward than the peer's as well. A row that misses its bar says by how much.
- **VW** is greedy (`--cb_explore_adf --epsilon 0`), with products of context and action and costs of 1 less the reward,
  as tuned for the bake-off. In a Python loop it reads text, which Python makes of each context.
- **The C++ reference** (`benchmarks/reference.cpp`) is the objective written by hand, compiled with
  `-O3 -march=native -ffast-math`. It knows one kind of settings and checks next to nothing.
- Rows of long logs, of cards and of a loaded service stand in [scale](scale.md) and [capacity](capacity.md).
- **Other libraries** run in a process of an environment of their own, `.venv-peers`.

`make bench` measures all rows and writes this page. `python -m benchmarks --rows default_loop_20x5,default_act`
measures some, and `python -m benchmarks --help` says what else there is.
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
    rows = {name: bench for name, bench in BENCH.items() if name in results and bench.group not in ELSEWHERE}
    if "about" in results:
        yield _machine(results["about"], sorted({results[name]["date"] for name in rows if "date" in results[name]}))
    busy = [f"`{name}`" for name in rows if results[name].get("load", 0) > BUSY]
    if busy:
        yield f"\n**Preliminary:** {len(busy)} rows were measured on a busy machine; the end of the page names them."
    for group, names in groupby(rows, key=lambda name: rows[name].group):
        shown = [name for name in names if "ratio" in results[name]]
        if shown:
            yield from _table(group, shown, results)
    yield from _section("Notes", (f"`{n}`: {results[n]['note']}" for n in rows if _noted(rows[n], results[n])))
    missed = (name for name in rows if misses(rows[name].bar, results[name]))
    yield from _section("Bars that are missed", (_missed(name, results) for name in missed))
    skipped = {name: results[name]["skipped"] for name in rows if "skipped" in results[name]}
    yield from _section("Not measured here", (f"`{name}`: {why}" for name, why in skipped.items()))
    yield from _section("Measured on a busy machine", [f"{', '.join(busy)}: measure again."] if busy else [])


def _noted(bench: Bench, found: Mapping[str, Any]) -> bool:
    return bool(found.get("note")) and not bench.bar


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == 0:
            yield f"\n## {title}\n"
        yield f"- {line}"


def _machine(found: Mapping[str, Any], dates: list[str]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    when = f", {dates[0]}" if len(dates) == 1 else f", {dates[0]} to {dates[-1]}" if dates else ""
    return f"Measured on {found['cores']} cores of {found['cpu']}{when}; Python {found['python']}, {versions}."


def _table(group: str, names: list[str], results: Mapping[str, Any]) -> Iterator[str]:
    """The mean rewards have a column where any row of the group makes decisions."""
    head = ["row", "what", "ours", "peer", "ratio (spread)", "bar", "met?"]
    earned = any("our_reward" in results[name] for name in names)
    if earned:
        head.append("mean reward, ours / peer")
    yield f"\n## {group}\n"
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for name in names:
        cells = _cells(name, results[name])
        yield f"| {' | '.join([*cells, rewards(results[name])] if earned else cells)} |"


def _cells(name: str, found: Mapping[str, Any]) -> list[str]:
    bench = BENCH[name]
    return [
        f"`{name}`",
        bench.what,
        f"{short(found['o2pl'])} {found['unit']}",
        f"{short(found['peer'])} ({bench.against})",
        f"{short(found['ratio'])} ({spread(found)})",
        bench.bar,
        verdict(bench.bar, found),
    ]


def rewards(found: Mapping[str, Any]) -> str:
    return f"{found['our_reward']:.4f} / {found['peer_reward']:.4f}" if "our_reward" in found else ""


def verdict(bar: str, found: Mapping[str, Any]) -> str:
    said = misses(bar, found)
    if said is None:
        return ""
    return f"**missed** {' and '.join(said)}" if said else "met"


def _missed(name: str, results: Mapping[str, Any]) -> str:
    found, bar = results[name], BENCH[name].bar
    if bar.startswith("gap"):
        reached = f"a gap of {found['peer'] - found['o2pl']:.4f}"
    elif bar.startswith("value"):
        reached = f"{short(found['o2pl'])} {found['unit']}"
    else:
        reached = f"a ratio of {short(found['ratio'])}"
    earned = f" and a mean reward of {rewards(found).replace(' / ', ' against ')}" if MORE in bar else ""
    said = " and ".join(misses(bar, found) or [])
    return f"`{name}`: {reached}{earned}, where the bar is {bar}: missed {said}. {bound(name, results)}".rstrip()


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def store(results: Mapping[str, Any]) -> None:
    """The rows that there are now, with this machine; rows of old names go."""
    kept = {name: results[name] for name in BENCH if name in results}
    RESULTS.write_text(json.dumps({"about": about(), **kept}, indent=2) + "\n")


def write() -> None:
    PAGE.write_text(rendered(stored()))
    scale_page.write(stored())
    readme_table.write(stored())


if __name__ == "__main__":
    write()
