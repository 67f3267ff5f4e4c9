"""Generated lines of README: the verdicts from `summary.json`, between two markers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from o2pl.errors import InvalidInput
from o2pl_reproduction.claims.study import VERDICTS, Claim, Study, figure_text
from o2pl_reproduction.reports.markdown import table
from o2pl_reproduction.reports.report import claim_of

START = "<!-- verdicts: made by `o2pl-reproduction report docs/reproduction --readme README.md` -->"
END = "<!-- end of verdicts -->"
MOST = 10  # lines
_OWN = "our own question: "
_PESSIMISM = {  # claim -> where and how it was asked, all else equal
    "bakeoff/o2pl-penalty-0.1": "online on data sets: our penalty (λ = 0.1)",
    "bakeoff/o2pl-penalty-1": "online on data sets: the paper's penalty (λ = 1)",
    "overlap/o2pl-pessimism": "logs of weak overlap: penalty and clip",
    "overlap/o2pl-clip-alone": "logs of weak overlap: the clip alone",
    "overlap/o2pl-penalty-0.3": "logs of weak overlap: the penalty on top of the clip",
    "overlap/o2pl-paper-pessimism": "logs of weak overlap: penalty and clip as the paper prints them",
    "safe-improvement/good-pessimism": "improving a good policy from its own log: penalty and clip",
    "safe-improvement/poor-pessimism": "improving a poor policy from its own log: penalty and clip",
}


def update(readme: Path, folder: Path, studies: Sequence[Study]) -> None:
    """Update the lines between the markers from `folder/summary.json`."""
    text = readme.read_text()
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        raise InvalidInput(f"{readme}: found no lines between {START!r} and {END!r}, expected both once, in this order")
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    link = os.path.relpath(folder, readme.parent)
    summary = json.loads((folder / "summary.json").read_text())
    readme.write_text(f"{before}{START}\n{verdict_lines(summary, studies, link)}\n{END}{after}")


def verdict_lines(summary: Mapping[str, Any], studies: Sequence[Study], link: str) -> str:
    """Return the number of claims by verdict, and a line for the headline claim of each study.

    Lines are in the order of `VERDICTS`; what does not hold has the same place and the same letters as what does.
    """
    counts = {verdict: count for verdict, count in summary["counts"].items() if count}
    own = {verdict: count for verdict, count in counts.items() if verdict.startswith(_OWN)}
    of_paper = {verdict: count for verdict, count in counts.items() if verdict not in own}
    stored = {claim["id"]: claim_of(claim) for claim in summary["claims"]}
    shown = [(study, stored.get(study.headline)) for study in studies if study.headline]
    if len(shown) > MOST:
        raise InvalidInput(f"found {len(shown)} studies with a headline, expected {MOST} or fewer")
    decided = sorted(shown, key=lambda each: _place(each[1]))
    return "\n".join(
        [
            *_counted(f"the paper's {sum(of_paper.values())} claims", of_paper),
            *_counted(f"{sum(own.values())} questions of our own", own),
            *(_line(study, claim, link) for study, claim in decided),
            *_pessimism_lines(stored),
        ]
    )


def _pessimism_lines(stored: Mapping[str, Claim]) -> list[str]:
    """The paper's thesis as a table: where penalty and clip help, by how much reward."""
    found = [(what, stored[claim]) for claim, what in _PESSIMISM.items() if claim in stored]
    if not found:
        return []
    rows = [
        {
            "where": what,
            "helps?": f"**{claim.verdict.removeprefix(_OWN)}**",
            "reward gained": figure_text(claim.measured),
        }
        for what, claim in found
    ]
    return ["", "**Does pessimism earn more reward?** All else equal:", "", *table(rows)]


def _counted(what: str, counts: Mapping[str, int]) -> list[str]:
    """A table of one line, with a column for each verdict."""
    return [*table([{what: "", **{verdict.removeprefix(_OWN): f"**{n}**" for verdict, n in counts.items()}}]), ""]


def _place(claim: Claim | None) -> tuple[bool, int]:
    """Return the sort key: decided claims first, in the order of `VERDICTS`; unmeasured ones last."""
    if claim is None:
        return True, len(VERDICTS)
    return claim.verdict.endswith("undecided"), VERDICTS.index(claim.verdict)


def _line(study: Study, claim: Claim | None, link: str) -> str:
    name = f"[{study.title}]({link}/claims.md#{_anchor(study.title)})"
    if claim is None:
        return f"- **Not measured yet**: {name}."
    verdict = claim.verdict.removeprefix(_OWN)
    whose = "Our own question, " if claim.verdict.startswith(_OWN) else ""
    said = f"{whose}{verdict}" if whose else verdict[:1].upper() + verdict[1:]
    why = "" if claim.measured.is_bounded else f" ({claim.reason})"
    return f"- **{said}**{why}: {claim.claim} {figure_text(claim.measured)}, bar {claim.bar}. {name}"


def _anchor(title: str) -> str:
    """Return the anchor of a heading, as the repository's pages generate it."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")
