"""Options that several commands have, and what their texts mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from o2pl.errors import InvalidInput, nearest

LOG_HELP = (
    "Parquet (a file or a folder), Arrow or CSV with columns `action`, `reward`, `propensity` and the context;"
    " VW's dsjson or text; or a saved learner."
)
Log = Annotated[Path, typer.Argument(help=LOG_HELP)]
SkipBad = Annotated[int, typer.Option(min=0, help="Skip up to this many unreadable rows, and report them.")]

Map = Annotated[
    str | None,
    typer.Option(
        "--map",
        help="JSON lines of your own shape: where things are, such as"
        " `context=$.user, items=$.candidates[*], chosen=$.shown, reward=$.click, propensity=$.p`.",
    ),
]

OutOfCore = Annotated[
    bool | None,
    typer.Option(
        "--out-of-core/--in-memory",
        help="Parquet only: keep few rows in memory at a time. [default: if the log needs more than --memory]",
    ),
]
Memory = Annotated[str | None, typer.Option(help="Memory limit, such as `4GB`. [default: half of the free memory]")]
EngineName = Annotated[
    str, typer.Option("--engine", help="`local`, or `ray`: split the rows between the workers of a Ray cluster.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of workers for --engine ray. [default: one per core]")]
Address = Annotated[
    str | None,
    typer.Option(help="Address of a running Ray cluster that can read the files. [default: start a local one]"),
]

Database = Annotated[
    str | None,
    typer.Option(
        help="A SQLite file, or `postgresql://user@host/name`. [default: O2PL_DATABASE, else `o2pl.sqlite` here]"
    ),
]
App = Annotated[str | None, typer.Option("--app", help="The application's name. [default: the only one]")]


def range_option(text: str, option: str = "rewards") -> tuple[float, float]:
    """Parse a range: `0,1` -> (0, 1)."""
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError:
        raise InvalidInput(f"{option}: found {text!r}, expected two numbers such as 0,1") from None
    return low, high


def list_option(text: str) -> list[str]:
    """Parse a list: `a, b` -> ["a", "b"]."""
    return [part.strip() for part in text.split(",") if part.strip()]


def policy_option(text: str, option: str = "policy") -> Any:
    """Return `uniform`, `logged`, or the learner loaded from a file."""
    from o2pl.learners.base import load

    if text in ("uniform", "logged"):
        return text
    if not Path(text).is_file():
        around = Path(text).parent
        files = [str(path) for path in around.glob("*.o2pl")] if around.is_dir() else []
        close = nearest(text, ["uniform", "logged", *files])
        meant = f"{close}, or" if " one of " not in close else "expected 'uniform', 'logged' or"
        raise InvalidInput(f"{option}: found no file {text!r}, {meant} a saved learner")
    return load(text)
