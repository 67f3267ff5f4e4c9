"""`make bench`: every row is measured now, side by side with its peer, written to results.json and docs/benchmarks.md.

`python -m benchmarks loop_20x5 act_latency` measures these alone; the others keep what they had.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import date
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from benchmarks import page
from benchmarks.measure import Skipped
from benchmarks.table import BENCH, Bench, met


def measured(bench: Bench) -> dict[str, Any]:
    """A row as it is stored."""
    about = {"bar": bench.bar, "date": date.today().isoformat()}
    try:
        row = bench.measure()
    except (Skipped, ModuleNotFoundError) as reason:
        return {"skipped": str(reason), **about}
    numbers = {"o2pl": row.ours, "peer": row.peer, "ratio": row.ratio, "low": row.low, "high": row.high}
    said = {"note": row.note} if row.note else {}
    return {**{name: float(value) for name, value in numbers.items()}, "unit": row.unit, **about, **said}


def shown(name: str, bench: Bench, found: dict[str, Any], seconds: float) -> list[str]:
    if "skipped" in found:
        return [name, "", "", "", "", bench.bar, f"skipped: {found['skipped']}", ""]
    verdict = {True: "", False: " missed", None: ""}[met(bench.bar, found)]
    numbers = [page.short(found["o2pl"]), page.short(found["peer"]), f"{found['ratio']:.3g}", page.spread(found)]
    return [name, *numbers, bench.bar + verdict, found["unit"], f"{seconds:.0f} s"]


def main() -> None:
    names = sys.argv[1:] or list(BENCH)
    if unknown := [name for name in names if name not in BENCH]:
        sys.exit(f"rows: found {', '.join(unknown)}, expected some of {', '.join(BENCH)}")
    console = Console() if sys.stdout.isatty() else Console(width=120)
    if os.getloadavg()[0] > 0.5:
        console.print(f"The machine is busy (load {os.getloadavg()[0]:.1f}): do not trust what follows.")
    table = Table(Column("row", no_wrap=True), "o2pl", "peer", "ratio", "spread", "bar", "unit", "took")
    results = page.stored()
    for name in names:
        start = time.perf_counter()
        with console.status(name):
            results[name] = measured(BENCH[name])
        table.add_row(*shown(name, BENCH[name], results[name], time.perf_counter() - start))
        kept = {each: results[each] for each in BENCH if each in results}
        page.RESULTS.write_text(
            json.dumps({"about": page.about(), **kept}, indent=2) + "\n"
        )  # now: a stop loses nothing
    console.print(table)
    page.write()


if __name__ == "__main__":
    main()
