"""The report as one page that works offline: what holds and what does not on the first screen, the rest folded."""

from __future__ import annotations

import base64
import html
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from o2pl_reproduction.claims.study import VERDICTS, WHOSE, Claim, Verdict, figure_text
from o2pl_reproduction.reports.markdown import NO_ROWS, made_text

if TYPE_CHECKING:
    from o2pl_reproduction.reports.report import Section

_CLASS: dict[Verdict, str] = {
    "holds as stated": "yes",
    "holds in direction, weaker": "some",
    "holds for our recipe, not for the paper's": "some",
    "matches, does not outperform": "some",
    "does not hold": "no",
    "undecided": "open",
    "our own question: yes": "yes",
    "our own question: no": "no",
    "our own question: undecided": "open",
}
_FIRST: tuple[Verdict, ...] = ("holds as stated", "does not hold", "undecided")  # side by side
_SIGN = {"yes": "✓", "some": "~", "no": "✗", "open": "?"}
_STYLE = """
:root { color-scheme: light; --ink: #1b1b1b; --soft: #5d5d5d; --line: #d9d9d9; --paper: #ffffff; --tint: #f5f6f8; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.1rem 1rem 4rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: .95rem/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.45rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1rem; margin: .9rem 0 .3rem; }
p { margin: .4rem 0; max-width: 52rem; }
a { color: #0b5394; }
figure { margin: 1rem 0; }
figure img { width: 100%; max-width: 50rem; height: auto; display: block; }
.tiles { display: flex; flex-wrap: wrap; gap: .3rem; margin: .3rem 0; }
.tile { border: 1.5px solid; border-radius: .4rem; padding: .05rem .45rem; display: flex; gap: .35rem;
  align-items: baseline; font-size: .82rem; }
.tile b { font-size: 1.2rem; }
.at { scroll-margin-top: 3.5rem; }
.claims td:last-child { min-width: 8.5rem; }
.scroll { overflow-x: auto; }
.hint { display: none; color: var(--soft); font-size: .82rem; margin: .2rem 0 0; }
table { border-collapse: collapse; font-size: .86rem; margin: .4rem 0; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .28rem .5rem; border-bottom: 1px solid var(--line); }
th { background: var(--tint); white-space: nowrap; }
td.number { font-variant-numeric: tabular-nums; }
td.number, .nowrap { white-space: nowrap; }
code { background: var(--tint); padding: .1rem .3rem; border-radius: .2rem; font-size: .9em; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .85rem; }
.verdict { display: inline-block; padding: .02rem .5rem; border-radius: .7rem; font-weight: 600; border: 1.5px solid;
  line-height: 1.35; }
.yes { color: #00573f; border-color: #009e73; background: #e8f6f1; }
.some { color: #7a4b00; border-color: #e69f00; background: #fdf4e0; }
.no { color: #8a2f00; border-color: #d55e00; background: #fdece2; }
.open { color: #444; border-color: #9a9a9a; background: #f1f1f1; }
details { border-top: 1px solid var(--line); }
details > summary { padding: .38rem 0; cursor: pointer; }
summary .title { font-weight: 600; margin-right: .4rem; }
summary .mini { border: 1px solid; border-radius: .6rem; padding: 0 .4rem; font-size: .8rem; margin-right: .2rem;
  white-space: nowrap; }
details details { margin: .4rem 0; }
@media (max-width: 42rem) {
  body { padding-top: .7rem; font-size: .92rem; }
  h1 { font-size: 1.2rem; }
  .tile b { font-size: 1.05rem; }
  .claims .none { display: none; }
  .hint { display: block; }
  .claims thead { display: none; }
  .claims, .claims tbody, .claims tr, .claims td { display: block; width: 100%; }
  .claims tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .claims td { border: 0; padding: .08rem 0; white-space: normal; }
  .claims td[data-name]::before { content: attr(data-name) ": "; color: var(--soft); }
  .scroll table { width: max-content; min-width: 100%; }
}
@media print { body { max-width: none; } figure, tr { break-inside: avoid; } }
"""
_SMALL = (
    "<p><strong>This is the small size</strong>: few seeds and short runs, to show how it works. Claims that it cannot"
    " decide are undecided. <code>o2pl-reproduction reproduce --full</code> runs the paper's size.</p>"
)
_ABOUT = (
    "<p>A <em>contextual bandit</em> sees a context, chooses an action, and learns the reward of that action only. The"
    " paper proposes to learn the policy directly, from importance-weighted rewards, with a penalty that grows where"
    " the data give little support.</p>"
)
_FOLD = "<script>if (innerWidth < 680) document.getElementById('heads').open = false</script>"  # the first screen


def page(sections: Sequence[Section]) -> str:
    claims = [claim for section in sections for claim in section.claims]
    small = any(section.made.get("size") == "quick" for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>o2pl: the paper, reproduced</title><style>{_STYLE}</style></head><body>\n"
        "<h1>Fast Best-in-Class Regret for Contextual Bandits, reproduced</h1>"
        f"{_ABOUT}<p>This report checks {len(claims)} claims. Each has a measured value with a 95 % interval, a bar,"
        " and a verdict computed from the stored rows: a bar is met if the whole interval clears it.</p>"
        f"{_SMALL * small}{_tiles(claims)}{_headlines(sections)}<h2>All claims, study by study</h2>"
        '<p class="soft">Select a study to see its claims, figures and numbers.</p>'
        + "".join(_section(section) for section in sections)
        + "</body></html>\n"
    )


def _tiles(claims: Sequence[Claim]) -> str:
    """Return the number of claims by verdict: the paper's claims, and our own questions."""
    counts = Counter(claim.verdict for claim in claims)
    own = [verdict for verdict in VERDICTS if verdict.startswith("our own")]
    shown = ""
    for title, group in (
        ("The paper's claims", [*_FIRST, *(verdict for verdict in VERDICTS if verdict not in (*own, *_FIRST))]),
        ("Our own questions", own),
    ):
        if any(counts[verdict] for verdict in group):
            tiles = "".join(
                f'<span class="tile {_CLASS[verdict]}"><b>{counts[verdict]}</b>'
                f"{_text(verdict.removeprefix('our own question: '))}</span>"
                for verdict in group
            )
            shown += f'<h2>{title}</h2><div class="tiles">{tiles}</div>'
    return shown


def _headlines(sections: Sequence[Section]) -> str:
    """Return the headline claim of each study that has one."""
    body = ""
    for section in sections:
        claim = next((each for each in section.claims if each.id == section.study.headline), None)
        if claim is not None:
            own = '<div class="soft">our own question</div>' if claim.whose == "own" else ""
            body += (
                f'<tr><td><a href="#{section.name}">{_text(section.study.title)}</a></td>'
                f'<td>{_text(claim.claim)}</td><td class="number">{_text(figure_text(claim.measured))}</td>'
                f'<td class="number">{_text(claim.bar)}</td><td>{own}{_chip(claim.verdict)}</td></tr>'
            )
    if not body:
        return ""
    head = "".join(f"<th>{name}</th>" for name in ("study", "claim", "measured [95 % interval]", "bar", "verdict"))
    return (
        '<details id="heads" open><summary><span class="title">The main claim of each study</span></summary>'
        f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></details>{_FOLD}'
    )


def _chip(verdict: Verdict, note: str = "") -> str:
    """Return the verdict as a label; the note says whose question it is."""
    kind, said = _CLASS[verdict], verdict.rpartition(": ")[2]
    return f'<span class="verdict {kind}">{_SIGN[kind]} {_text(said)}{note}</span>'


def _section(section: Section) -> str:
    study, name = section.study, section.name
    pictures = "".join(
        f'<figure><img loading="lazy" alt="{_text(study.title)}: {_text(picture)}" '
        f'src="data:image/png;base64,{_embedded(path)}"></figure>'
        for picture, path in section.pictures.items()
    )
    counts = Counter(_CLASS[claim.verdict] for claim in section.claims)
    minis = "".join(f'<span class="mini {kind}">{_SIGN[kind]} {counts[kind]}</span>' for kind in _SIGN if counts[kind])
    kept = "" if section.has_rows else f"<p><strong>{NO_ROWS}</strong></p>"
    made = f"<p class='soft'>{_text(made_text(section.made))}</p>" if section.made else ""
    return (
        f'<details><summary><span class="title">{_text(study.title)}</span>{minis}</summary>'
        f'<div class="at" id="{name}">'
        f"<p>{_text(study.claim)}</p>{made}{kept}{_claims(section.claims)}{pictures}{_table(section.table)}"
        f"<ul class='soft'>{''.join(f'<li>{_text(item)}</li>' for item in study.settings)}</ul>"
        f"<p class='soft'>Rebuild: <code>o2pl-reproduction run {name} --{section.made.get('size', 'full')}</code></p>"
        "</div></details>"
    )


def _claims(claims: Sequence[Claim]) -> str:
    """Return the claims, and below them the numbered conditions of their verdicts."""
    conditions = list(dict.fromkeys(claim.conditions for claim in claims if claim.conditions))
    body, none = [], ' class="none"'
    for claim in claims:
        note = f" <sup>{conditions.index(claim.conditions) + 1}</sup>" if claim.conditions else ""
        reason = f'<div class="soft">{_text(claim.reason)}</div>' if claim.reason else ""
        source = f'<div class="soft">{claim.bar.source}</div>' if claim.bar.source != "ours" else ""
        body.append(
            f'<tr><td class="claim">{_text(claim.claim)}</td>'
            f'<td data-name="whose">{WHOSE[claim.whose]}</td>'
            f'<td data-name="paper"{"" if claim.paper else none}>{_text(claim.paper or "–")}</td>'
            f'<td data-name="measured"><span class="nowrap">{figure_text(claim.measured)}</span>'
            f'<div class="soft">{_text(claim.measured.method)}</div></td>'
            f'<td data-name="bar"><span class="nowrap">{_text(claim.bar)}</span>{source}</td>'
            f"<td>{_chip(claim.verdict, note)}{reason}</td></tr>"
        )
    names = ("claim", "whose", "paper", "measured [95 % interval]", "bar", "verdict")
    head = "".join(f"<th>{name}</th>" for name in names)
    notes = "".join(f"<li>{_text(condition)}</li>" for condition in conditions)
    return (
        f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
        + f'<ol class="soft">{notes}</ol>' * bool(conditions)
    )


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{_text(name)}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row.values()) + "</tr>" for row in rows)
    return (
        '<details><summary>The numbers</summary><p class="hint">Scroll the table sideways to see all columns →</p>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>'
    )


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _text(value: Any) -> str:
    return html.escape(str(value))
