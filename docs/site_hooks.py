"""What `mkdocs build` makes by itself: the reference, the architecture, pages of the repository's root, llms.txt.

Everything that a user can type must be documented: a public name without a docstring, a command or an option without
help stops the build.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

import click
import grimp
import typer
from mkdocs.structure.files import File, Files

import o2pl
from o2pl.cli import app

ROOT = Path(__file__).parents[1]

# Public names by what they are for, in the order of the page.
GROUPS = {
    "Learners": ["Bandit", "O2PL", "ContinuousBandit", "GaussianO2PL", "Decider", "load", "Run"],
    "Decisions and logs": [
        "Decision", "ListDecision", "Offer", "Interactions", "Log", "ActionSets", "SparseRows", "read_log", "describe",
    ],
    "Learning from logs": ["fit", "Fit", "SafeImprovement"],
    "Evaluation": [
        "evaluate", "Evaluation", "Candidates", "evaluate_lists", "ListEvaluation", "DeployVerdict",
        "confidence_sequence", "ConfidenceSequence", "estimate_propensities",
    ],
    "Settings of learners": [
        "Member", "Exact", "Geometric", "Replay", "Change", "CountBonus", "UniformExploration", "Hashed",
    ],
    "The rest": ["Explanation", "InvalidInput", "MissingExtra", "warm_up"],
}  # fmt: skip


def on_files(files: Files, config: Any) -> Files:
    for uri, text in generated().items():
        files.append(File.generated(config, uri, content=text))
    return files


def generated() -> dict[str, str]:
    """Every page that is made here, by its address in the site."""
    return {
        "reference/python.md": python_reference(),
        "reference/command-line.md": command_reference(),
        "architecture.md": architecture(),
        "contributing.md": from_root("CONTRIBUTING.md"),
        "changelog.md": from_root("CHANGELOG.md"),
        "llms.txt": for_language_models(),
    }


def from_root(name: str) -> str:
    """A page of the repository, with its links as they are from within docs/."""
    text = (ROOT / name).read_text()
    text = text.replace("](docs/", "](")
    return re.sub(r"\]\((?!http|#)(src|tests|benchmarks|README)[^)]*\)", "]", text)


# -- Python


def python_reference() -> str:
    undocumented = [name for name in public_names() if not inspect.getdoc(getattr(o2pl, name))]
    if undocumented:
        raise SystemExit(f"public names: found no docstring of {undocumented}, expected one of each")
    listed = [name for names in GROUPS.values() for name in names]
    if sorted(listed) != sorted(public_names()):
        differ = sorted(set(listed) ^ set(public_names()))
        raise SystemExit(f"docs/site_hooks.py, GROUPS: found {differ} in only one of GROUPS and o2pl.__all__")
    parts = ["# Python reference\n\nEverything below is in the module `o2pl`: `o2pl.Bandit`, and so on.\n"]
    for title, names in GROUPS.items():
        parts.append(f"\n## {title}\n")
        parts += [f"\n::: o2pl.{name}\n" for name in names]
    return "".join(parts)


def public_names() -> list[str]:
    return [name for name in o2pl.__all__ if not name.startswith("__")]


# -- the command line


def command_reference() -> str:
    command = typer.main.get_command(app)
    context = click.Context(command, info_name="o2pl")
    parts = ["# Command line\n\nMade from `o2pl --help` and the `--help` of each command.\n"]
    return "".join(parts + list(_commands(command, context)))


def _commands(command: Any, context: Any) -> Any:
    for name in command.list_commands(context):
        each = command.get_command(context, name)
        inner = click.Context(each, info_name=name, parent=context)
        if hasattr(each, "list_commands"):
            yield from _commands(each, inner)
            continue
        path = inner.command_path
        if not each.help:
            raise SystemExit(f"{path}: found no help, expected a docstring")
        usage = " ".join(each.collect_usage_pieces(inner))
        yield f"\n## {path}\n\n    {path} {usage}\n\n{each.help}\n\n"
        rows = [_option(path, option) for option in each.params if option.name != "help"]
        if rows:
            yield "| option | meaning |\n|---|---|\n" + "".join(rows)
        if each.epilog:
            yield f"\n{each.epilog}\n"


def _option(path: str, option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if option.param_type_name == "argument":
        names = f"`{option.metavar or option.name.upper()}`"
    text = getattr(option, "help", None)
    if not text:
        raise SystemExit(f"{path} {names}: found no help, expected a sentence")
    shown = option.default is not None and not callable(option.default) and option.default not in ((), [], False)
    default = f" [default: {option.default}]" if shown and "default:" not in text else ""
    return f"| {names} | {(text + default).replace('|', chr(92) + '|')} |\n"


# -- the architecture


def imports_between_parts() -> tuple[list[str], Counter[tuple[str, str]]]:
    """The parts in the order of the layers, from the bottom, and how many modules of one import one of another."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    layers = [part.strip() for layer in reversed(contract["layers"]) for part in layer.split("|")]
    graph = grimp.build_graph("o2pl")
    counted: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        here = _part(module)
        for other in graph.find_modules_directly_imported_by(module):
            there = _part(other)
            if here and there and here != there:
                counted[here, there] += 1
    return layers, counted


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def architecture() -> str:
    layers, counted = imports_between_parts()
    about = {part: _first_line(part) for part in layers}
    table = "".join(f"| `{part}` | {about[part]} |\n" for part in layers)
    return f"""# Architecture

One path of the data, and a folder for each step of it. A part imports only from parts above it in this table;
import-linter keeps that.

| part | what it is |
|---|---|
{table}
## Who imports whom

Drawn from the imports themselves. A row imports the columns with a dot; the larger the dot, the more modules do. All
dots are to the left of the diagonal: nothing imports what comes after it.

{matrix(layers, counted)}
"""


def _first_line(part: str) -> str:
    for path in (ROOT / f"src/o2pl/{part}.py", ROOT / f"src/o2pl/{part}/__init__.py"):
        if path.exists():
            found = re.match(r'"""(.*?)(?:\n\n|""")', path.read_text(), flags=re.DOTALL)
            return escape(" ".join(found[1].split())) if found else ""
    raise SystemExit(f"pyproject.toml, layers: found {part!r}, which is no module of o2pl")


def matrix(layers: list[str], counted: Counter[tuple[str, str]]) -> str:
    """An SVG in the colour of the text around it."""
    step, left, top = 20, 120, 110
    size = step * len(layers)
    parts = [
        f'<svg viewBox="0 0 {left + size + 10} {top + size + 10}" role="img" aria-label="Which part imports which"'
        ' style="max-width:44rem;width:100%;font:12px sans-serif" fill="currentColor">'
    ]
    for place, part in enumerate(layers):
        middle = place * step + step / 2
        parts.append(f'<text x="{left - 8}" y="{top + middle + 4}" text-anchor="end">{part}</text>')
        parts.append(f'<text transform="translate({left + middle + 4},{top - 8}) rotate(-60)">{part}</text>')
        parts.append(
            f'<rect x="{left + place * step}" y="{top + place * step}" width="{step}" height="{step}" opacity=".15"/>'
        )
    for (here, there), count in sorted(counted.items()):
        x, y = (offset + layers.index(part) * step + step / 2 for offset, part in ((left, there), (top, here)))
        radius = min(1.5 + count**0.5, step / 2 - 1)
        said = f"{here} imports {there}, {count} times"
        parts.append(f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" opacity=".75"><title>{said}</title></circle>')
    return "".join([*parts, "</svg>"])


# -- for programs that read


def for_language_models() -> str:
    pages = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "index.md"]
    lines = [f"- [{_title(path)}]({path.stem}/): {_first_paragraph(path)}" for path in pages]
    return "\n".join(
        [
            "# o2pl",
            "",
            "> Contextual bandits in Python: a library, a command line and a decision service.",
            "",
            *lines,
            "",
        ]
    )


def _title(path: Path) -> str:
    return path.read_text().splitlines()[0].removeprefix("# ")


def _first_paragraph(path: Path) -> str:
    paragraphs = path.read_text().split("\n\n")
    return " ".join(paragraphs[1].split())[:200] if len(paragraphs) > 1 else ""
