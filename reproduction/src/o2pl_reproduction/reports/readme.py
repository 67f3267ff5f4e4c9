"""Generated lines of README: how many claims hold, from `summary.json`, between two markers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from o2pl.errors import InvalidInput

START = "<!-- verdicts: made by `o2pl-reproduction report docs/reproduction --readme README.md` -->"
END = "<!-- end of verdicts -->"
_OWN = "our own question: "


def update(readme: Path, folder: Path) -> None:
    """Update the lines between the markers from `folder/summary.json`."""
    text = readme.read_text()
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        raise InvalidInput(f"{readme}: found no lines between {START!r} and {END!r}, expected both once, in this order")
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    summary = json.loads((folder / "summary.json").read_text())
    readme.write_text(
        f"{before}{START}\n{verdict_lines(summary, os.path.relpath(folder, readme.parent))}\n{END}{after}"
    )


def verdict_lines(summary: Mapping[str, Any], link: str) -> str:
    """Return the number of claims by verdict, in the order of the summary."""
    counts = {verdict: count for verdict, count in summary["counts"].items() if count}
    own = {verdict.removeprefix(_OWN): count for verdict, count in counts.items() if verdict.startswith(_OWN)}
    paper = {verdict: count for verdict, count in counts.items() if not verdict.startswith(_OWN)}
    return "\n".join(
        [
            f"- Of the paper's {sum(paper.values())} claims: {_counted(paper)}.",
            f"- Of {sum(own.values())} questions of our own: {_counted(own)}.",
            f"- [All of them, the most important first]({link}/claims.md), [as data]({link}/summary.json).",
        ]
    )


def _counted(counts: Mapping[str, int]) -> str:
    return "; ".join(f"**{count}** {verdict}" for verdict, count in counts.items())
