"""`make bench`: every row is measured now, beside its peer; results.json and docs/benchmarks.md are made from it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from benchmarks import capacity_page, machine, page
from benchmarks.measure import Bench, Skipped, threads
from benchmarks.table import BENCH

DESCRIPTION = """Measure o2pl side by side with Vowpal Wabbit, a C++ reference and other libraries.

Every row that is measured is stored in benchmarks/results.json at once; rows that are not keep what they had. At the
end docs/benchmarks.md is written from that file. All rows take tens of minutes."""
EXAMPLES = """examples:
  python -m benchmarks                                        all rows
  python -m benchmarks --rows default_loop_20x5,default_act   these rows
  python -m benchmarks --rows 'default_*,start_*'             all rows of these names
  python -m benchmarks --quick                                do all rows work? tiny sizes, nothing is written
  python -m benchmarks --list                                 names and what they measure

The rows `bakeoff_cpu` and `bakeoff_cpu_loop` need the folder of data sets in the environment variable O2PL_DATA. Rows
of other libraries need the environment .venv-peers, which `make peers` makes. Rows that lack something are skipped."""


def measured(bench: Bench, quick: bool = False, load: float = 0.0) -> dict[str, Any]:
    """A row as it is stored. `load`: of the machine before the run began."""
    about = {"bar": bench.bar, "date": date.today().isoformat(), "load": round(load, 2)}
    try:
        with threads(bench.threads):
            row = bench.measure(**(bench.quick if quick else {}))
    except (Skipped, ModuleNotFoundError) as reason:
        return {"skipped": str(reason), **about}
    numbers = {"o2pl": row.ours, "peer": row.peer, "ratio": row.ratio, "low": row.low, "high": row.high}
    if row.rewards is not None:
        numbers |= {"our_reward": row.rewards[0], "peer_reward": row.rewards[1]}
    said = {name: text for name, text in (("note", row.note), ("card", row.card)) if text}
    return {**{name: float(value) for name, value in numbers.items()}, "unit": row.unit, **about, **said}


def chosen(given: str | None) -> list[str]:
    """The rows of a comma-separated list of names and patterns; all rows without one."""
    if given is None:
        return list(BENCH)
    patterns = [each.strip() for each in given.split(",") if each.strip()]
    if unknown := [each for each in patterns if not any(fnmatchcase(name, each) for name in BENCH)]:
        sys.exit(f"--rows: found {', '.join(unknown)}, expected names or patterns of these rows: {', '.join(BENCH)}")
    return [name for name in BENCH if any(fnmatchcase(name, each) for each in patterns)]


def shown(name: str, bench: Bench, found: dict[str, Any], seconds: float, quick: bool) -> list[str]:
    took = f"{seconds:.0f} s"
    if "skipped" in found:
        return [name, "", "", "", bench.bar, f"skipped: {found['skipped']}", "", took]
    verdict = "" if quick else page.verdict(bench.bar, found).replace("*", "")
    ours = f"{page.short(found['o2pl'])} {found['unit']}"
    ratio = f"{page.short(found['ratio'])} ({page.spread(found)})"
    return [name, ours, page.short(found["peer"]), ratio, bench.bar, verdict, page.rewards(found), took]


def run(names: Sequence[str], quick: bool, console: Console) -> None:
    """Measure, show and, unless `quick`, store."""
    load = 0.0 if quick else machine.busy_cores()
    if load > page.BUSY:
        console.print(f"Other processes keep {load:.1f} cores busy: do not trust what follows.")
    heads = "ours", "peer", "ratio (spread)", "bar", "met?", "mean reward", "took"
    table = Table(Column("row", no_wrap=True), *heads)
    results = page.stored()
    for name in names:
        start = time.perf_counter()
        with console.status(name):
            found = measured(BENCH[name], quick, load)
        table.add_row(*shown(name, BENCH[name], found, time.perf_counter() - start, quick))
        if "skipped" not in found or "card" not in results.get(name, {}):  # what a card once did stays recorded
            results[name] = found
        if not quick:
            page.store(results)  # now: a stop loses nothing
    console.print(table)
    if quick:
        console.print("Tiny sizes: these numbers mean nothing, and none of them was written.")
    else:
        page.write()
        capacity_page.write()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", metavar="NAME,...", help="measure these rows alone; * stands for anything")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that all works; writes nothing")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and what they measure")
    given = parser.parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    if given.list:
        for name in chosen(given.rows):
            print(f"{name}: {BENCH[name].what}; beside {BENCH[name].against}")
        return
    run(chosen(given.rows), given.quick, console)


if __name__ == "__main__":
    main()
