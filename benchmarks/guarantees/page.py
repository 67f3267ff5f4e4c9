"""The page docs/guarantees.md and its figure, from the stored rows."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.guarantees.doors import DELTA, DOORS, UNPROMISED
from benchmarks.guarantees.run import ROWS
from benchmarks.guarantees.widths import WIDTHS
from o2pl.drawing import new_figure, tidy

PAGE = ROWS.with_suffix(".md")
FIGURE = Path("images/guarantees.png")
# ruff: noqa: E501
_TEXT = """# Guarantees

Does the [judgement](evaluation.md#when-is-it-better) keep its word where the truth is known? Each row is one world and one door: {logs} logs were drawn, and what was said of each was compared with the truth. `make guarantees` makes the rows and this page again, at full size.

- **wrong**: share of logs with a false "better", or with a false "worse" if there are more of them. Promised in at most {side} of logs; `safe_to_deploy`, the service's guard and its control group (at any of the daily looks) promise {delta}, `from_incumbent` 10 %.
- **missed**: share of intervals that do not contain the truth; at most {delta} is promised. Logs that are refused ("cannot be judged") have no interval. For `from_incumbent` (10 %): its bound is above the true gain of what it deploys, or what it keeps is worse than the incumbent by .01. For the propensity test (1 %): exact propensities are rejected. For lists: any of the joint intervals.
- **holds**: neither is above its promise by more than two standard errors. In worlds named "power", "better" is expected in 80 % of logs where the true gain is at least three standard errors of its estimate (**gain/error**); intervals for any time and for several candidates are wider, and take more rows.

{summary}

![Missed intervals by world and door, as multiples of the promised share](images/guarantees.png)

"""
_WIDTHS = """
## Widths

Widths of {sure} intervals for any time (medians of five logs), beside two rivals that get the same doubly robust terms and bets on the same rows. "DR betting" is the hedged capital with predictable plug-in bets of Waudby-Smith and Ramdas, given the smallest and largest possible term. "asymptotic" is the confidence sequence of Waudby-Smith and others, tuned to the number of rows; it holds in the limit only. Neither counts what the log hardly shows, which `evaluate` does: that is most of the difference at 1,000 rows.

"""
_POWERFUL = ("evaluate, difference",)


def share(count: int, of: int) -> float:
    return count / of if of else 0.0


def wrong(row: dict[str, Any]) -> int:
    """Return how often a verdict was false, the more frequent one."""
    return max(int(row["falsely better"]), int(row["falsely worse"]))


def powerless(row: dict[str, Any]) -> bool:
    """Return whether "better" is said too rarely where the gain is three standard errors."""
    asked = (
        row["world"].startswith("power") and row["door"] in _POWERFUL and row["gain"] >= 3 * (row["error"] or math.inf)
    )
    return asked and share(row["better"], row["logs"]) < 0.8 - _two(0.8, row["logs"])


def holds(row: dict[str, Any]) -> bool:
    door = DOORS[row["door"]]
    fine = share(wrong(row), row["logs"]) <= door.wrong + _two(door.wrong, row["logs"])
    covers = share(row["missed"], row["intervals"]) <= door.missed + _two(door.missed, row["intervals"])
    return fine and covers and not powerless(row)


def _two(p: float, logs: int) -> float:
    return 2 * math.sqrt(p * (1 - p) / max(logs, 1))


def _line(row: dict[str, Any]) -> str:
    logs = row["logs"]
    missed = f"{share(row['missed'], row['intervals']):.1%}" if row["intervals"] else "–"
    shares = f"{row['better'] / logs:.1%} | {row['worse'] / logs:.1%} | {share(wrong(row), logs):.1%}"
    size = f"{row['gain'] / row['error']:+.1f}" if row["error"] else "–"
    kept = "not promised" if row["door"] in UNPROMISED else "yes" if holds(row) else "**no**"
    return (
        f"| {row['world']} | {row['door']} | {row['rows']:,} | {logs} | {row['gain']:+.3f} | {size} | {shares} | {missed}"
        f" | {kept} |\n"
    )


def write_page() -> None:
    rows = json.loads(ROWS.read_text())
    promised = [row for row in rows if row["door"] not in UNPROMISED]
    kept, worlds = sum(map(holds, promised)), len({row["world"] for row in rows})
    logs = " to ".join(f"{n:,}" for n in sorted({min(row["logs"] for row in rows), max(row["logs"] for row in rows)}))
    summary = f"{kept} of {len(promised)} rows hold, in {worlds} worlds."
    lines = [_TEXT.format(side=f"{DELTA / 2:.1%}", delta=f"{DELTA:.0%}", logs=logs, summary=summary)]
    lines.append("| world | door | rows | logs | true gain | gain/error | better | worse | wrong | missed | holds |\n")
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|\n")
    PAGE.write_text("".join([*lines, *map(_line, rows), *_widths()]))
    _draw([row for row in promised if row["intervals"]])


def _widths() -> list[str]:
    if not WIDTHS.exists():
        return []
    lines = [_WIDTHS.format(sure=f"{1 - DELTA:.0%}")]
    lines.append("| case | rows | ours | DR betting | asymptotic | ours over the best |\n|---|---|---|---|---|---|\n")
    for row in json.loads(WIDTHS.read_text()):
        own, *rivals = row["widths"]
        numbers = " | ".join(f"{width:.4f}" for width in (own, *rivals))
        lines.append(f"| {row['case']} | {row['rows']:,} | {numbers} | {own / min(rivals):.2f} |\n")
    return lines


def _draw(rows: list[dict[str, Any]]) -> None:
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    doors = list(dict.fromkeys(row["door"] for row in rows))
    figure = new_figure(8.5, 2.6 + 0.24 * len(worlds))
    axes = figure.subplots()
    for door, (marker, colour) in zip(
        doors, product("osD^v", ("#0072B2", "#E69F00", "#009E73", "#CC79A7")), strict=False
    ):
        mine = [row for row in rows if row["door"] == door]
        shares = [share(row["missed"], row["intervals"]) / DOORS[door].missed for row in mine]
        places = [worlds.index(row["world"]) + 0.6 * (doors.index(door) / len(doors) - 0.5) for row in mine]
        axes.plot(shares, places, marker, color=colour, markersize=4, alpha=0.8, label=door)
    axes.axvline(1.0, color="#D55E00", linestyle="--", linewidth=1.2, label="promised at most")
    axes.set_yticks(range(len(worlds)), worlds, fontsize=7)
    axes.set_ylim(len(worlds) - 0.4, -0.6)
    axes.set_xlabel("intervals that miss the truth, as a multiple of the promised share")
    axes.legend(frameon=False, fontsize=7, ncols=4, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    tidy(axes, "x")
    figure.savefig(PAGE.parent / FIGURE, dpi=110, bbox_inches="tight")
