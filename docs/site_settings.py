"""The page of settings: every argument of the learners and their parts, every setting of the service, every variable.

Texts come from the docstrings and from the settings' own descriptions. A setting without one stops the build.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
from mkdocs.structure.files import File, Files

import o2pl
from o2pl.serving.settings import Settings

ROOT = Path(__file__).parents[1]
LEARNERS = ["Bandit", "O2PL", "ContinuousBandit", "GaussianO2PL"]
PARTS = ["Member", "Exact", "Geometric", "Replay", "Change", "CountBonus", "UniformExploration", "Hashed"]

_HEAD = "| setting | default | meaning |\n|---|---|---|\n"

# Environment variables, and what each sets. `undocumented_variables` finds those of the code that are missing here.
VARIABLES = {
    "O2PL_DATABASE": "The service's database: a SQLite file, or `postgresql://…`. `--database` overrides it.",
    "O2PL_CONFIG": "The TOML file with options of `o2pl serve` and `o2pl train`. `--config` overrides it. Each option"
    " is a variable too, such as `O2PL_SERVE_PORT` and `O2PL_TRAIN_GUARD`: `--help` names them.",
    "O2PL_KEY": "The write key that `o2pl simulate` uses. `--key` overrides it.",
    "O2PL_DATA": "The folder of data sets for `o2pl-reproduction run`. `--data` overrides it.",
    "OPENBLAS_NUM_THREADS": "How many threads large solves use. Results are the same for any number.",
}  # fmt: skip


def on_files(files: Files, config: Any) -> Files:
    files.append(File.generated(config, "reference/settings.md", content=settings_reference()))
    return files


def settings_reference() -> str:
    missing = undocumented_variables()
    if missing:
        raise SystemExit(f"docs/site_settings.py, VARIABLES: found no text for {missing}, expected one for each")
    parts = [
        "# Settings\n\nAll settings with defaults: [learners](#learners), [parts of learners](#parts-of-learners),"
        " [the decision service](#the-decision-service), [environment variables](#environment-variables). Options of "
        "commands are on the page of the [command line](command-line.md).\n\n## Learners\n",
        *(_of_class(name) for name in LEARNERS),
        "\n## Parts of learners\n\nPass these to a learner: `Bandit(3, schedule=o2pl.Geometric(growth=1.1))`.\n",
        *(_of_class(name) for name in PARTS),
        "\n## The decision service\n\nEach application has its own. Change them with `PUT "
        "/personalizer/v1.0/configurations/service`: see [the service](../service.md#settings).\n\n",
        service_table(),
        "\n## Environment variables\n\n| variable | what it sets |\n|---|---|\n",
        *(f"| `{name}` | {text} |\n" for name, text in VARIABLES.items()),
    ]
    return "".join(parts)


def _of_class(name: str) -> str:
    cls = getattr(o2pl, name)
    first = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
    head = f"\n### {name}\n\n{first} [Reference](python.md#o2pl.{name}).\n\n{_HEAD}"
    return head + "".join(
        f"| `{setting}` | {default} | {_cell(text)} |\n" for setting, default, text in class_settings(cls)
    )


def class_settings(cls: Any) -> list[tuple[str, str, str]]:
    """Name, default and meaning of each argument of the constructor; a missing or a wrong name stops the build."""
    described = described_parameters(inspect.getdoc(cls) or "")
    arguments = list(inspect.signature(cls).parameters.values())
    differ = sorted({each.name for each in arguments} ^ described.keys())
    if differ:
        raise SystemExit(
            f"{cls.__name__}: found {differ} in only one of the constructor and its docstring's Parameters,"
            " expected every setting in both"
        )
    return [(each.name, _default(each), described[each.name]) for each in arguments]


def described_parameters(docstring: str) -> dict[str, str]:
    """The section Parameters of a numpydoc docstring: names (several with commas between), and indented text."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\w[^\n]*\n-+\n|\Z)", docstring, flags=re.DOTALL | re.MULTILINE)
    found = {}
    for names, text in re.findall(
        r"^(\w[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)+)", section[1] if section else "", re.MULTILINE
    ):
        for name in names.split(","):
            found[name.strip()] = " ".join(text.split())
    return found


def _default(argument: inspect.Parameter) -> str:
    if argument.default is inspect.Parameter.empty:
        return "required"
    text = repr(argument.default).replace("'", '"')
    return f"`{text if len(text) <= 60 else type(argument.default).__name__ + '(…)'}`"


def service_table() -> str:
    """Every setting of an application, its default as JSON has it, and what its description says."""
    hints = get_type_hints(Settings, include_extras=True)
    defaults = msgspec.to_builtins(Settings())
    lines = [_HEAD]
    for field, name in zip(Settings.__struct_fields__, Settings.__struct_encode_fields__, strict=True):
        texts = [part.description for part in get_args(hints[field]) if isinstance(part, msgspec.Meta)]
        if not texts or not texts[0]:
            raise SystemExit(f"o2pl.serving.settings, {field}: found no description, expected Meta(description=...)")
        shown = defaults[name] if isinstance(defaults[name], str) else json.dumps(defaults[name])
        shown = re.sub(r"^PT(\d+)S$", lambda found: _minutes(int(found[1])), shown)
        lines.append(f"| `{name}` | `{shown}` | {_cell(texts[0])} |\n")
    return "".join(lines)


def _minutes(seconds: int) -> str:
    return f"PT{seconds // 60}M" if seconds % 60 == 0 else f"PT{seconds}S"


def undocumented_variables() -> list[str]:
    """Environment variables that the code names and this page does not."""
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"\"(O2PL_[A-Z_]+)\"", path.read_text()))
    return sorted(named - VARIABLES.keys())


def _cell(text: str) -> str:
    return text.replace("|", chr(92) + "|")
