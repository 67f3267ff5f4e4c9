"""The page docs/guarantees.md and its figure, from the stored rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from benchmarks.guarantees.doors import DELTA
from benchmarks.guarantees.run import ROWS
from o2pl.drawing import new_figure, tidy

PAGE = ROWS.with_suffix(".md")
FIGURE = Path("images/guarantees.png")
# ruff: noqa: E501
_TEXT = """# Guarantees

Does the [judgement](evaluation.md#when-is-it-better) keep its word where the truth is known? Each row is one world and one door: so many logs were drawn, and what was said of each was compared with the truth. `make guarantees` makes the rows and this page again, at full size.

- **wrong**: share of logs with a false "better" or a false "worse"; each is promised in at most {side} of logs.
- **missed**: share of intervals that do not contain the truth; at most {delta} is promised. Logs that are refused ("cannot be judged") have no interval.
- **holds**: neither is above its promise by more than two standard errors. In worlds named "power" the policy gains about three standard errors of DR, and "better" is expected in 80 % of logs.

![Shares of missed intervals, by world and door, beside the promise](images/guarantees.png)

"""


def share(count: int, of: int) -> float:
    return count / of if of else 0.0


def wrong(row: dict[str, Any]) -> int:
    """Return how often a verdict was false, the more frequent one."""
    better, worse = row["better"] * (row["gain"] <= 1e-9), row["worse"] * (row["gain"] >= -1e-9)
    return max(int(better), int(worse))


def holds(row: dict[str, Any]) -> bool:
    if row["world"].startswith("power"):
        powerless = row["door"] == "evaluate, difference" and share(row["better"], row["logs"]) < 0.8 - _two(0.8, row)
        return not powerless and _within(row)
    return _within(row)


def _within(row: dict[str, Any]) -> bool:
    side = DELTA / 2
    fine = share(wrong(row), row["logs"]) <= side + _two(side, row)
    return fine and share(row["missed"], row["intervals"]) <= DELTA + _two(DELTA, row)


def _two(p: float, row: dict[str, Any]) -> float:
    return 2 * math.sqrt(p * (1 - p) / row["logs"])


def write_page() -> None:
    rows = json.loads(ROWS.read_text())
    lines = [_TEXT.format(side=f"{DELTA / 2:.1%}", delta=f"{DELTA:.0%}")]
    lines.append("| world | door | rows | logs | true gain | better | worse | wrong | missed | holds |\n")
    lines.append("|---|---|---|---|---|---|---|---|---|---|\n")
    for row in rows:
        logs = row["logs"]
        missed = f"{share(row['missed'], row['intervals']):.1%}" if row["intervals"] else "–"
        shares = f"{row['better'] / logs:.1%} | {row['worse'] / logs:.1%} | {share(wrong(row), logs):.1%}"
        lines.append(
            f"| {row['world']} | {row['door']} | {row['rows']:,} | {logs} | {row['gain']:+.3f} | {shares} | {missed}"
            f" | {'yes' if holds(row) else '**no**'} |\n"
        )
    PAGE.write_text("".join(lines))
    _draw([row for row in rows if row["intervals"]])


def _draw(rows: list[dict[str, Any]]) -> None:
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    doors = list(dict.fromkeys(row["door"] for row in rows))
    figure = new_figure(8.5, 1.5 + 0.24 * len(worlds))
    axes = figure.subplots()
    for door, marker in zip(doors, "osD^v", strict=False):
        mine = [row for row in rows if row["door"] == door]
        shares = [share(row["missed"], row["intervals"]) for row in mine]
        axes.plot(shares, [worlds.index(row["world"]) for row in mine], marker, markersize=4, alpha=0.7, label=door)
    axes.axvline(DELTA, color="#D55E00", linestyle="--", linewidth=1.2, label="promised at most")
    axes.set_yticks(range(len(worlds)), worlds, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("share of intervals that miss the truth")
    axes.legend(frameon=False, fontsize=7)
    tidy(axes, "x")
    figure.savefig(PAGE.parent / FIGURE, dpi=110, bbox_inches="tight")
