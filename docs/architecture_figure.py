"""`python docs/architecture_figure.py`: the diagram and the table of docs/architecture.md, from the imports themselves.

Parts are the modules and folders right under `o2pl`, in the order of the import contract. An arc says that a part
imports another and does not reach it by way of a third: what is left out follows from what is drawn.
"""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "docs" / "architecture.md", ROOT / "docs" / "images" / "architecture.svg"
BEGIN, END = "<!-- parts: written by docs/architecture_figure.py -->", "<!-- end of parts -->"
Edges = set[tuple[str, str]]  # who imports whom

# Parts by what they are for, each group with its colour; one that is missing here stops the script.
GROUPS: dict[tuple[str, str], dict[str, str]] = {
    ("#7a4fa3", "shared tools"): {
        "errors": "what users can mend",
        "version": "the version",
        "lazily": "names imported when they are first used",
        "cluster": "Ray, and how many cores there are",
        "threads": "how many threads, and work on them",
        "special": "functions of probability theory",
        "extras": "what the core does without",
        "locks": "locks between processes",
        "protocols": "the signatures of all parts",
        "validation": "checks of what users give",
        "storage": "files that are versioned, never pickled",
        "drawing": "Matplotlib, in one place",
    },
    ("#0072b2", "data, in and out"): {
        "data": "contexts, decisions, logs",
        "encode": "frames and dictionaries to rows",
        "formats": "VW, Parquet, CSV, OBP: in and out",
    },
    ("#c2371b", "learning"): {
        "theory": "rates, schedules, inequalities",
        "features": "contexts to features",
        "policies": "features to probabilities",
        "objectives": "how good a policy looks from the log",
        "oracles": "minimisers",
        "kernels": "fused, faster versions of the parts",
        "engine": "when to learn, members, decisions",
        "explaining": "why a decision was made",
        "learners": "what users hold: Bandit, O2PL",
    },
    ("#00785a", "evaluation and simulation"): {
        "evaluation": "values of policies, with confidence",
        "fitting": "learning from a log, of any size",
        "simulation": "worlds, rivals, comparisons of learners",
        "adapters": "learners inside other libraries",
    },
    ("#9a6200", "what users start"): {
        "serving": "the decision service",
        "demo": "the product's story in a minute",
        "cli": "the command line, a file per command",
    },
}
SAID = {part: text for group in GROUPS.values() for part, text in group.items()}
COLOURS = {part: colour for (colour, _), group in GROUPS.items() for part in group}


def parts() -> list[str]:
    """In the order of the layers, from the bottom."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    return [part.strip() for layer in reversed(contract["layers"]) for part in sorted(layer.split("|"))]


def imports() -> Edges:
    """Between parts. Imports for types alone do not run, and do not count: as in the import contract."""
    graph = grimp.build_graph("o2pl", exclude_type_checking_imports=True)
    found = ((_part(module), _part(other)) for module in graph.modules
             for other in graph.find_modules_directly_imported_by(module))  # fmt: skip
    return {(here, there) for here, there in found if here and there and here != there}


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def reduced(edges: Edges) -> Edges:
    """Without the edges that follow from others: the transitive reduction of a graph without cycles."""
    below: dict[str, set[str]] = {}
    for here, there in edges:
        below.setdefault(here, set()).add(there)

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        left = list(below.get(start, ()))
        while left:
            part = left.pop()
            if part not in seen:
                seen.add(part)
                left += below.get(part, ())
        return seen

    reached = {part: reach(part) for part in below}
    return {
        (here, there)
        for here, there in edges
        if not any(there in reached.get(between, ()) for between in below[here] - {there})
    }


def svg(order: list[str], edges: Edges) -> str:
    """Parts from the top of the package to the bottom, arcs on the left."""
    shown = order[::-1]
    if unknown := sorted(set(shown) ^ set(COLOURS)):
        raise SystemExit(f"docs/architecture_figure.py, GROUPS: found {unknown} in only one of GROUPS and the layers")
    step, left, top = 26, 250, 58
    height = {part: top + step * place for place, part in enumerate(shown)}
    width, total = 640, top + step * len(shown) + 6
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" role="img" font-family="sans-serif"'
        ' font-size="13" aria-label="Which part of o2pl imports which">',
        f'<rect width="{width}" height="{total}" rx="8" fill="#ffffff"/>',
    ]
    for place, (colour, text) in enumerate(GROUPS):
        x, y = 16 + 200 * (place % 3), 18 + 18 * (place // 3)
        lines.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>')
        lines.append(f'<text x="{x + 10}" y="{y + 4}" fill="#1c1c1c" font-size="12">{escape(text)}</text>')
    for here, there in sorted(edges, key=lambda edge: (height[edge[0]], height[edge[1]])):
        first, last = height[here], height[there]
        bow = left - 14 - min(220, 0.62 * (last - first))
        lines.append(
            f'<path d="M{left - 8} {first} C{bow:.0f} {first} {bow:.0f} {last} {left - 8} {last}" fill="none"'
            f' stroke="{COLOURS[here]}" stroke-width="1.4" opacity=".65"><title>{here} imports {there}</title></path>'
        )
        lines.append(f'<path d="M{left - 4} {last} l-7 -4 v8 z" fill="{COLOURS[here]}" opacity=".8"/>')
    for part in shown:
        y, colour = height[part], COLOURS[part]
        lines.append(f'<circle cx="{left}" cy="{y}" r="5" fill="{colour}"/>')
        lines.append(
            f'<text x="{left + 12}" y="{y + 4}" fill="{colour}" font-weight="bold">{part}</text>'
            f'<text x="{left + 118}" y="{y + 4}" fill="#444444" font-size="11">{escape(SAID[part])}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def table(order: list[str], edges: Edges) -> str:
    """Every part, what it is, and all that it imports."""
    lines = ["| part | what it is | imports |", "|---|---|---|"]
    for part in reversed(order):
        used = [f"`{there}`" for there in reversed(order) if (part, there) in edges]
        lines.append(f"| `{part}` | {SAID[part]} | {', '.join(used) or '–'} |")
    return "\n".join([BEGIN, "", *lines, "", END])


def written() -> tuple[str, str]:
    """The page and the picture as they should be."""
    order, edges = parts(), imports()
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    return before + table(order, edges) + after, svg(order, reduced(edges))


if __name__ == "__main__":
    page, picture = written()
    PAGE.write_text(page)
    PICTURE.write_text(picture)
