"""The report of a reproduction, from stored rows only: one page that works offline, `summary.json`, `claims.md`."""

from __future__ import annotations

import base64
import html
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from o2pl.experiments import figures
from o2pl.experiments.store import results, write_whole
from o2pl.experiments.study import Claim, Study
from o2pl.extras import require_extra

VERDICT_MARKS = {  # a sign, and the words that go with it where there is room
    "reproduced": ("✓", "reproduced"),
    "reproduced under conditions": ("(✓)", "under conditions"),
    "not reproduced": ("✗", "not reproduced"),
}


@dataclass(frozen=True)
class Section:
    """A study as its rows have it."""

    study: Study
    claims: Sequence[Claim]
    pictures: Mapping[str, Path]  # figure's name -> PNG
    table: Sequence[Mapping[str, str]]


def build(out: str | os.PathLike[str], studies: Sequence[Study]) -> list[Section]:
    """Figures, `index.html`, `summary.json` and `claims.md` under `out`, of those studies whose rows are there."""
    require_extra("experiments", "making the report")
    folder = Path(out)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    sections, seeds = [], []
    for study in studies:
        if not (folder / f"{study.experiment.name}.parquet").exists():
            continue
        rows = results(folder, study.experiment.name)
        seeds.append(f"{study.experiment.name} {len(rows['seed'].unique())}")
        pictures = {
            name: figures.save_figure(figure, folder / "figures" / f"{study.experiment.name}-{name}")[0]
            for name, figure in study.figures(rows).items()
        }
        sections.append(Section(study, study.claims(rows), pictures, study.table(rows)))
    made = folder / "made.json"
    about = (json.loads(made.read_text()) if made.exists() else {}) | {"seeds": ", ".join(seeds)}
    _write_text(folder / "summary.json", json.dumps(summary_json(sections, about), indent=2, ensure_ascii=False) + "\n")
    _write_text(folder / "index.html", page(sections, about))
    _write_text(folder / "claims.md", markdown(sections, about))
    return sections


def _write_text(path: Path, text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode()))


def summary_json(sections: Sequence[Section], about: Mapping[str, Any]) -> dict[str, Any]:
    """The claims with numbers as numbers; what is not finite is null."""
    return {"made": dict(about), "claims": [_plain(claim) for section in sections for claim in section.claims]}


def _plain(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "experiment": claim.experiment,
        "claim": claim.claim,
        "paper": claim.paper,
        "measured": claim.measured if math.isfinite(claim.measured) else None,
        "bar": claim.bar,
        "verdict": claim.verdict,
        "conditions": claim.conditions,
    }


def markdown(sections: Sequence[Section], about: Mapping[str, Any]) -> str:
    """The claims as tables, for a document that is read as text."""
    lines = ["# The paper's claims, and what was measured", "", "; ".join(f"{k}: {v}" for k, v in about.items()), ""]
    for section in sections:
        claims = [
            {
                "claim": claim.claim,
                "paper": _number_text(claim.paper),
                "measured": _number_text(claim.measured),
                "bar": claim.bar,
                "verdict": claim.verdict,
            }
            for claim in section.claims
        ]
        lines += [f"## {section.study.title}", "", *_markdown_table(claims)]
        conditions = dict.fromkeys(claim.conditions for claim in section.claims if claim.conditions)
        lines += ["", section.study.settings, "", *(f"- Condition: {condition}" for condition in conditions)]
        lines += ["", *_markdown_table(section.table), ""]
        lines += [f"![{name}](figures/{path.name})" for name, path in section.pictures.items()] + [""]
    return "\n".join(lines)


def _markdown_table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    if not rows:
        return []
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


# -- the page

_STYLE = """
:root { color-scheme: light; --ink: #1b1b1b; --soft: #5d5d5d; --line: #d9d9d9; --paper: #ffffff; --tint: #f5f6f8; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p, li { max-width: 46rem; }
a { color: #0b5394; }
figure { margin: 1rem 0; }
figure img { width: 100%; max-width: 50rem; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .75rem 0; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid var(--line); }
th { background: var(--tint); white-space: nowrap; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
td.claim { width: 48%; }
.count { text-align: right; }
code { background: var(--tint); padding: .1rem .3rem; border-radius: .2rem; font-size: .9em; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .92rem; }
.verdict { display: inline-block; padding: .05rem .5rem; border-radius: 1rem; font-weight: 600; white-space: nowrap;
  border: 1.5px solid; }
.yes { color: #00573f; border-color: #009e73; background: #e8f6f1; }
.some { color: #7a4b00; border-color: #e69f00; background: #fdf4e0; }
.no { color: #8a2f00; border-color: #d55e00; background: #fdece2; }
@media (max-width: 40rem) {
  .claims thead, .count .words { display: none; }
  .claims, .claims tbody, .claims tr, .claims td { display: block; width: 100%; }
  .claims tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .claims td { border: 0; padding: .1rem 0; }
  .claims td[data-name]::before { content: attr(data-name) ": "; color: var(--soft); }
}
@media print { body { max-width: none; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""
_SMALL = (
    "<p><strong>This is the small size.</strong> Few seeds and short horizons show how it works; many bars can only be"
    " met at full size (<code>o2pl reproduce --full</code>).</p>"
)
_CLASS = {"reproduced": "yes", "reproduced under conditions": "some", "not reproduced": "no"}


def page(sections: Sequence[Section], about: Mapping[str, Any]) -> str:
    claims = [claim for section in sections for claim in section.claims]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>o2pl: the paper, reproduced</title><style>{_STYLE}</style></head><body>\n"
        "<h1>Fast Best-in-Class Regret for Contextual Bandits, reproduced</h1>"
        "<p>Each claim of the paper stands beside our figure, the bar it is held against, and a verdict that is"
        " computed from the stored rows.</p>"
        f"{_SMALL * (about.get('size') == 'quick')}<p class='soft'>{_about(about)}</p>{_overview(sections, claims)}"
        + "".join(_section(section, str(about.get("size", "quick"))) for section in sections)
        + "</body></html>\n"
    )


def _about(about: Mapping[str, Any]) -> str:
    return _text("; ".join(f"{name}: {value}" for name, value in about.items()))


def _overview(sections: Sequence[Section], claims: Sequence[Claim]) -> str:
    """How many claims of each section have which verdict."""
    head = "".join(f'<th class="count">{_chip(verdict)}</th>' for verdict in VERDICT_MARKS)
    body = "".join(
        f'<tr><td><a href="#{section.study.experiment.name}">{_text(section.study.title)}</a></td>'
        f"{_counts(section.claims)}</tr>"
        for section in sections
    )
    total = f"<tr><td><strong>all {len(claims)} claims</strong></td>{_counts(claims)}</tr>"
    return f"<table><thead><tr><th>study</th>{head}</tr></thead><tbody>{body}{total}</tbody></table>"


def _counts(claims: Sequence[Claim]) -> str:
    return "".join(f'<td class="count">{sum(c.verdict == verdict for c in claims)}</td>' for verdict in VERDICT_MARKS)


def _chip(verdict: str, note: str = "") -> str:
    sign, words = VERDICT_MARKS[verdict]
    return f'<span class="verdict {_CLASS[verdict]}">{sign}<span class="words"> {words}</span>{note}</span>'


def _section(section: Section, size: str) -> str:
    study = section.study
    name = study.experiment.name
    pictures = "".join(
        f'<figure><img alt="{_text(study.title)}: {_text(picture)}" src="data:image/png;base64,{_embedded(path)}">'
        f"</figure>"
        for picture, path in section.pictures.items()
    )
    return (
        f'<section><h2 id="{name}">{_text(study.title)}</h2><p>{_text(study.claim)}</p>{pictures}'
        f"{_claims(section.claims)}{_table(section.table)}<p class='soft'>{_text(study.settings)}</p>"
        f"<p class='soft'>Rebuild: <code>o2pl run {name} --{size}</code></p></section>"
    )


def _claims(claims: Sequence[Claim]) -> str:
    """The claims, and below them, numbered, the conditions that their verdicts refer to."""
    conditions = list(dict.fromkeys(claim.conditions for claim in claims if claim.conditions))
    body = []
    for claim in claims:
        note = f" <sup>{conditions.index(claim.conditions) + 1}</sup>" if claim.conditions else ""
        body.append(
            f'<tr><td class="claim">{_text(claim.claim)}</td>'
            f'<td data-name="paper">{_text(_number_text(claim.paper))}</td>'
            f'<td class="number" data-name="measured">{_text(_number_text(claim.measured))}</td>'
            f'<td class="number" data-name="bar">{_text(claim.bar)}</td><td>{_chip(claim.verdict, note)}</td></tr>'
        )
    head = "".join(f"<th>{name}</th>" for name in ("claim", "paper", "measured", "bar", "verdict"))
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
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _number_text(value: float | str | None) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.4g}"


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _text(value: Any) -> str:
    return html.escape(str(value))
