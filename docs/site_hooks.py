"""What `mkdocs build` makes by itself: the reference, pages of the repository's root, llms.txt.

Everything that a user can type must be documented: a public name without a docstring, a command or an option without
help stops the build.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import click
import typer
import yaml
from mkdocs.structure.files import File, Files

import o2pl
from o2pl.cli import app

ROOT = Path(__file__).parents[1]

# Public names by what they are for, in the order of the page.
GROUPS = {
    "Learners": ["Bandit", "O2PL", "ContinuousBandit", "GaussianO2PL", "Decider", "load", "Run"],
    "Decisions and logs": [
        "Decision", "Decisions", "ListDecision", "Offer", "Interactions", "Log", "ActionSets", "SparseRows",
        "read_log", "describe",
    ],
    "Learning from logs": ["fit", "Fit", "SafeImprovement"],
    "Evaluation": [
        "evaluate", "Evaluation", "Candidates", "Metric", "Metrics", "evaluate_lists", "ListEvaluation",
        "evaluate_quantiles", "Distribution", "evaluate_many_actions", "ManyActions",
        "DeployVerdict", "Judgement",
        "confidence_sequence", "ConfidenceSequence", "estimate_propensities",
    ],
    "Settings of learners": [
        "Member", "Exact", "Geometric", "Replay", "Change", "CountBonus", "UniformExploration", "Hashed",
    ],
    "The rest": ["Explanation", "InvalidInput", "MissingExtra"],
}  # fmt: skip
SIMULATION = ["compare", "LearnerComparison", "play", "Local", "Ray"]


def on_files(files: Files, config: Any) -> Files:
    for uri, text in generated().items():
        files.append(File.generated(config, uri, content=text))
    return files


def generated() -> dict[str, str]:
    """Every page that is made here, by its address in the site."""
    return {
        "reference/python.md": python_reference(),
        "reference/command-line.md": command_reference(),
        "contributing.md": from_root("CONTRIBUTING.md"),
        "changelog.md": from_root("CHANGELOG.md"),
        "llms.txt": for_language_models(),
    }


def from_root(name: str) -> str:
    """A page of the repository, with its links as they are from within docs/."""
    text = (ROOT / name).read_text()
    text = text.replace("](docs/", "](")
    return re.sub(r"\]\((?!http|#)(src|tests|benchmarks|README|SECURITY)[^)]*\)", "]", text)


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
    parts.append("\n## Simulation\n\nIn the module `o2pl.simulation`.\n")
    parts += [f"\n::: o2pl.simulation.{name}\n" for name in SIMULATION]
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


# -- for programs that read


def for_language_models() -> str:
    """llms.txt: what o2pl is, the first example, and every page of the navigation with its first sentences."""
    start = (ROOT / "docs/index.md").read_text()
    example = re.search(r"```python\n.*?```", start, flags=re.DOTALL)
    lines = ["# o2pl", "", f"> {_plain(start.split(chr(10) * 2)[1])}", "", example[0] if example else ""]
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(), type("Loader", (yaml.SafeLoader,), {}))
    for entry in settings["nav"]:
        for title, inner in entry.items():
            lines += ["", f"## {title}", "", *(_listed(uri) for uri in _uris(inner))]
    return "\n".join([*lines, ""])


def _uris(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [uri for each in inner for uri in _uris(each)]


def _listed(uri: str) -> str:
    address, path = uri.removesuffix(".md") + ".html", ROOT / "docs" / uri
    if not path.exists():  # a generated page
        return f"- [{Path(uri).stem.replace('-', ' ')}]({address})"
    title, first = path.read_text().split("\n\n")[:2]
    sentences = re.match(r"(?:.*?[.?!](?:\s|$)){1,2}", _plain(first))
    return f"- [{title.removeprefix('# ')}]({address}): {(sentences[0] if sentences else _plain(first)).strip()}"


def _plain(markdown: str) -> str:
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)|\*\*?", lambda found: found[1] or "", markdown).split())
