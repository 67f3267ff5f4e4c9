"""The reproduction as pages of the site: one page per study and a first page that fits one screen.

`docs/reproduction/claims.md`, which `o2pl-reproduction report` writes, is cut at its headings; links into it lead to
the new pages.
`python docs/site_reproduction.py` writes the tables of studies that other pages show (`with_tables`).
Pages of results fold what comes after their first sections, and wide tables have a hint (docs/assets/site.js).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from o2pl_reproduction.registry import STUDIES
from o2pl_reproduction.reports.headlines import anchor
from o2pl_reproduction.reports.markdown import table as markdown_table

STORED = Path(__file__).parent / "reproduction"
CLAIMS = "reproduction/claims.md"
FIRST = "reproduction/index.md"
FOLDED = ("benchmarks.md",)
SHOWN = 6  # claims of a study before the others fold
_SHORT = {
    "holds as stated": "holds",
    "holds in direction, weaker": "weaker",
    "holds for our recipe, not for the paper's": "our recipe only",
    "matches, does not outperform": "matches",
    "does not hold": "does not hold",
    "undecided": "undecided",
    "our own question: yes": "yes",
    "our own question: no": "no",
    "our own question: undecided": "undecided",
}


def with_tables(text: str) -> str:
    """A page of docs/ with the tables of studies that it shows, between two comments, as the summary has them."""
    tables = json.loads((STORED / "summary.json").read_text())["tables"]

    def made(found: re.Match[str]) -> str:
        return "\n".join([found[1], *markdown_table(tables[found[2]]), found[3]])

    return re.sub(r"(<!-- table of (\S+) -->)\n.*?(<!-- end of table -->)", made, text, flags=re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    claims = files.get_file_from_path(CLAIMS)
    if claims is not None:
        files.remove(claims)
    for uri, text in pages().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_config(config: Any) -> Any:
    """The pages of the studies come after the first page of the reproduction in the navigation."""
    for entry in config.nav:
        for title, inner in entry.items():
            if inner == [FIRST]:
                entry[title] = [FIRST, *(uri for uri in pages() if uri != FIRST)]
    return config


def pages() -> dict[str, str]:
    """The first page, and one for each study that has claims."""
    text = (STORED / "claims.md").read_text()
    names = {study.title: study.experiment.name for study in STUDIES}
    made = {FIRST: ""}
    for title, body in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE):
        if title not in names:
            raise SystemExit(f"{STORED / 'claims.md'}: found {title!r}, expected the title of a study")
        body = short(body).replace("<details>", '<details markdown="1">')
        run = f"Run it: `o2pl-reproduction run {names[title]} --full`. [All studies](index.md).\n"
        made[f"reproduction/{names[title]}.md"] = f"# {title}\n{body}\n{run}"
    made[FIRST] = first_page(text, [uri for uri in made if uri != FIRST])
    return made


def short(body: str) -> str:
    """A study with its first figure above its first claims; the others, and how it was run, are folded."""
    figures = re.findall(r"^!\[.*\n", body, flags=re.MULTILINE)
    for figure in figures:
        body = body.replace(figure, "", 1)
    made = re.search(r"^\*(size: .*)\*\n", body, flags=re.MULTILINE)
    if made is not None:
        body = body.replace(made[0], "", 1)
    table = re.search(r"(?:^\|.*\n)+", body, flags=re.MULTILINE)
    if table is None:
        return body
    head, claims = table[0].splitlines(keepends=True)[:2], table[0].splitlines(keepends=True)[2:]
    shown = [*figures[:1], "\n", *head, *claims[:SHOWN], "\n"]
    if claims[SHOWN:]:
        shown.append(_folded(f"{len(claims) - SHOWN} more claims", [*head, *claims[SHOWN:]]))
    if figures[1:]:
        shown.append(_folded(f"{len(figures) - 1} more figures", [f"{figure}\n" for figure in figures[1:]]))
    if made is not None:
        shown.append(_folded("Size, date, machine and seeds", [f"{made[1]}\n"]))
    return body[: table.start()] + "".join(shown) + body[table.end() :]


def _folded(title: str, lines: list[str]) -> str:
    return f"<details><summary>{title}</summary>\n\n{''.join(lines)}\n</details>\n\n"


def first_page(claims: str, uris: list[str]) -> str:
    summary = json.loads((STORED / "summary.json").read_text())
    legend = re.search(r"^A bar is met.*$", claims, flags=re.MULTILINE)
    lines = [
        "# Reproduction",
        "",
        "Every experiment of the paper, and questions of our own. Each claim has a value with a 95 % interval, a bar"
        " and a computed verdict. `o2pl-reproduction report docs/reproduction` computes all of it again from the stored"
        " rows.",
        "",
        _counts("The paper's claims", summary["counts"], own=False),
        _counts("Our own questions", summary["counts"], own=True),
        "",
        '<div class="compact" markdown="1">',
        "",
        "| study | the paper's claims | our own questions | main claim |",
        "|---|---|---|---|",
        *(_line(study, summary, uris) for study in STUDIES),
        "",
        "</div>",
        "",
        '??? note "What the verdicts mean"',
        "",
        f"    {legend[0] if legend else ''}",
        "",
    ]
    return "\n".join(lines)


def _counts(title: str, counts: Mapping[str, int], own: bool) -> str:
    said = [f"**{n}** {_SHORT[key]}" for key, n in counts.items() if n and key.startswith("our own") == own]
    return f"**{title}:** {', '.join(said) or 'none yet'}.  "


def _line(study: Any, summary: Mapping[str, Any], uris: list[str]) -> str:
    name = study.experiment.name
    own = [claim for claim in summary["claims"] if claim["experiment"] == name]
    counts = Counter(claim["verdict"] for claim in own)
    found = [", ".join(_shares(counts, ours)) or "–" for ours in (False, True)]
    title = f"[{study.title}]({name}.md)" if f"reproduction/{name}.md" in uris else study.title
    main = next((claim for claim in own if claim["id"] == study.headline), None)
    verdict = _SHORT[main["verdict"]] if main else "–"
    return f"| {title} | {' | '.join(found) if own else 'not measured yet | –'} | {verdict} |"


def _shares(counts: Mapping[str, int], own: bool) -> list[str]:
    """Return how many claims have each verdict, in the order of `_SHORT`."""
    return [f"{counts[key]} {_SHORT[key]}" for key in _SHORT if counts.get(key) and key.startswith("our own") == own]


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links into the claims become links to the page of their study. Pages of results have the room of the sidebars."""
    uri = page.file.src_uri
    if uri in FOLDED or uri in ("index.md", "paper.md"):
        page.meta["hide"] = ["navigation"] if uri == "index.md" else ["navigation", "toc"]
    elif uri.startswith("reproduction/"):
        page.meta["hide"] = ["toc"]
    up = "../" * page.file.src_uri.count("/")
    names = {anchor(study.title): study.experiment.name for study in STUDIES}

    def moved(found: re.Match[str]) -> str:
        return f"]({up}reproduction/{names.get(found[1] or '', 'index')}.md)"

    return re.sub(r"\]\((?:\.\./)*reproduction/claims\.md(?:#([^)]+))?\)", moved, markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    return folded(html) if page.file.src_uri in FOLDED else html


def folded(html: str) -> str:
    """The list of what to know, and all sections after the first one, each behind its heading.

    docs/assets/site.js opens the one that an address names.
    """
    first, *rest = re.split(r"(?=<h2 )", html)
    first = re.sub(
        r"<ul>.*?</ul>",
        lambda found: f'<details class="section"><summary>How to read this page</summary>{found[0]}</details>',
        first,
        count=1,
        flags=re.DOTALL,
    )
    made = [first, *rest[:1]]
    for section in rest[1:]:
        heading, _, body = section.partition("</h2>")
        identity = re.search(r'id="([^"]+)"', heading)
        title = re.sub(r"<a class=\"headerlink.*?</a>|<[^>]+>", "", heading)
        name = f' id="{identity[1]}"' if identity else ""
        made.append(f'<details class="section"{name}><summary>{title}</summary>{body}</details>')
    return "".join(made)


if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.rglob("*.md")):
        text = path.read_text()
        if with_tables(text) != text:
            path.write_text(with_tables(text))
            print(path)
