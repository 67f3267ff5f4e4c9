"""The report as Markdown: `claims.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from o2pl_reproduction.claims.study import VERDICTS, WHOSE, Claim, figure_text

if TYPE_CHECKING:
    from o2pl_reproduction.reports.report import Section

NO_ROWS = (
    "The rows of this study are not stored here yet. Its figures and numbers are those of an earlier run, and cannot "
    "be computed again from this repository."
)


def markdown(sections: Sequence[Section], first: Sequence[str] = ()) -> str:
    """Return the page. first: lines before the studies."""
    claims = [claim for section in sections for claim in section.claims]
    lines = ["# Reproduction: all claims", "", *counts_table(claims), ""]
    lines += ["A bar is met if the whole 95 % interval clears it. " + VERDICTS_EXPLAINED, ""]
    lines += [*first, ""] if first else []
    for section in sections:
        lines += _study(section)
    return "\n".join(lines)


VERDICTS_EXPLAINED = (
    "*Weaker*: less than half of the paper's effect. *Our recipe*: the paper's own algorithm does not clear the bar. "
    "*Matches*: within a stated margin, but not shown to be better. *Undecided*: the interval contains the bar, or "
    "there is no interval."
)


def counts_table(claims: Sequence[Claim]) -> list[str]:
    counts = Counter(claim.verdict for claim in claims)
    return table([{"verdict": verdict, "claims": str(counts[verdict])} for verdict in VERDICTS if counts[verdict]])


def made_text(made: Mapping[str, object]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in made.items() if name != "rows")


def _study(section: Section) -> list[str]:
    study = section.study
    lines = [f"## {study.title}", "", study.claim, ""]
    lines += [f"*{made_text(section.made)}*", ""] if section.made else []
    lines += [] if section.has_rows else [f"**{NO_ROWS}**", ""]
    lines += [*table([_line(claim) for claim in section.claims]), ""]
    conditions = dict.fromkeys(claim.conditions for claim in section.claims if claim.conditions)
    lines += [*(f"- Condition: {condition}" for condition in conditions), ""] if conditions else []
    lines += [f"![{name}](figures/{path.name})" for name, path in section.pictures.items()] + [""]
    lines += _folded("What was run, and what the paper leaves open", [f"- {item}" for item in study.settings])
    return lines + (_folded("The numbers", table(section.table)) if section.table else [])


def _line(claim: Claim) -> Mapping[str, str]:
    source = "" if claim.bar.source == "ours" else f" ({claim.bar.source})"
    reason = f" ({claim.reason})" if claim.reason else ""
    return {
        "claim": claim.claim,
        "whose": WHOSE[claim.whose],
        "paper": claim.paper or "–",
        "measured [95 % interval]": figure_text(claim.measured),
        "interval by": claim.measured.method,
        "bar": f"{claim.bar}{source}",
        "verdict": f"**{claim.verdict}**{reason}",
    }


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    if not rows:
        return []
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
