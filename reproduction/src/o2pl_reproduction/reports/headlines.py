"""What stands first in `claims.md`: the headline claim of each study, and where penalty and clip help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from o2pl.errors import InvalidInput
from o2pl_reproduction.claims.study import VERDICTS, Claim, Study, figure_text
from o2pl_reproduction.reports.markdown import table

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


def headline_lines(stored: Mapping[str, Claim], studies: Sequence[Study]) -> list[str]:
    """Return a line for the headline claim of each study, and the table of pessimism. stored: claims by id.

    Lines are in the order of `VERDICTS`; what does not hold has the same place and the same letters as what does.
    """
    shown = [(study, stored.get(study.headline)) for study in studies if study.headline]
    if len(shown) > MOST:
        raise InvalidInput(f"found {len(shown)} studies with a headline, expected {MOST} or fewer")
    lines = [_line(study, claim) for study, claim in sorted(shown, key=lambda each: _place(each[1]))]
    return [*lines, *_pessimism_lines(stored)]


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


def _place(claim: Claim | None) -> tuple[bool, int]:
    """Return the sort key: decided claims first, in the order of `VERDICTS`; unmeasured ones last."""
    if claim is None:
        return True, len(VERDICTS)
    return claim.verdict.endswith("undecided"), VERDICTS.index(claim.verdict)


def _line(study: Study, claim: Claim | None) -> str:
    name = f"[{study.title}](#{anchor(study.title)})"
    if claim is None:
        return f"- **Not measured yet**: {name}."
    verdict = claim.verdict.removeprefix(_OWN)
    whose = "Our own question, " if claim.verdict.startswith(_OWN) else ""
    said = f"{whose}{verdict}" if whose else verdict[:1].upper() + verdict[1:]
    why = "" if claim.measured.is_bounded else f" ({claim.reason})"
    return f"- **{said}**{why}: {claim.claim} {figure_text(claim.measured)}, bar {claim.bar}. {name}"


def anchor(title: str) -> str:
    """Return the anchor of a heading, as the repository's pages generate it."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")
