"""`o2pl explain`: a saved policy, and a context as one types it, from a file, or from a log."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from o2pl.contexts import Offer
from o2pl.contexts.schema import Field, Schema
from o2pl.drawing import write_figure
from o2pl.errors import InvalidInput
from o2pl.extras import require_extra
from o2pl.formats.command import LOG_HELP, read_and_say
from o2pl.learners.base import load
from o2pl.learners.decider import Decider
from o2pl.learners.explaining import Explanation

_EXPECTED = (
    "expected JSON, such as '{\"age\": 31}' or '[0.5, 2]', the name of a JSON file,"
    " or the values of a row: 31,Rome,phone"
)
_OFFER = {"user", "items", "ids", "exclude"}


ContextOption = Annotated[
    str | None,
    typer.Option(
        help='What to decide on. JSON: `{"age": 31}`, `[0.5, 2]`, `{"user": [...], "items": [[...], ...]}`; the'
        " name of a JSON file; or the values of a row, separated by commas."
    ),
]
RowOption = Annotated[
    int | None, typer.Option(min=0, help="Or a row of a log, counted from 0: of --log, or of the learner's own.")
]
LogOption = Annotated[Path | None, typer.Option(help=LOG_HELP)]
ActionOption = Annotated[str | None, typer.Option(help="The action to explain. [default: the likeliest]")]
AgainstOption = Annotated[str | None, typer.Option(help="The one to compare with. [default: the likeliest other]")]
FigureOption = Annotated[Path | None, typer.Option(help="Where to draw the bars, PNG or SVG.")]


def explain_policy(
    model: Path,
    context: str | None = None,
    row: int | None = None,
    log: Path | None = None,
    action: str | None = None,
    against: str | None = None,
    figure: Path | None = None,
) -> None:
    """Say why: what each feature of a context adds to an action, against another, and what the log knows of it."""
    if figure is not None:
        require_extra("plots", "drawing figures")
    if (context is None) == (row is None):
        raise InvalidInput("context: found both or neither of --context and --row, expected one of them")
    if log is not None and row is None:
        raise InvalidInput("log: found a log without --row, expected the number of one of its rows")
    if not model.is_file():
        raise InvalidInput(f"model: found no file {str(model)!r}, expected a saved learner")
    learner = load(model)
    decider = learner if isinstance(learner, Decider) else learner.snapshot()
    given = row_of_log(learner, decider, log, row) if context is None else typed_context(context, decider)
    known = given.ids if isinstance(given, Offer) else decider.names
    named = {"action": action, "against": against}
    chosen = {name: _as_action(text, known) for name, text in named.items() if text is not None}
    found: Explanation = learner.explain(given, **chosen)
    typer.echo(str(found))
    draw(found, figure)


def draw(found: Explanation, figure: Path | None) -> None:
    if figure is not None:
        target = figure if figure.suffix else figure.with_suffix(".png")
        write_figure(found.figure(), target)
        typer.echo(f"figure: {target}")


def _as_action(text: str, known: Any) -> Any:
    """A word that is known, or else a number where it is one."""
    return text if text in (known or ()) or not text.isdecimal() else int(text)


# -- a row of a log


def row_of_log(learner: Any, decider: Decider, log: Path | None, row: int | None) -> Any:
    """As the policy reads it; says what was played there."""
    if log is not None:
        found = read_and_say(log, None, 0, need_propensities=False)
    elif isinstance(learner, Decider):
        raise InvalidInput("row: found a published policy, which has no log, expected --log too, or --context")
    else:
        found = learner.log_
    if row is None or row >= len(found):
        raise InvalidInput(f"row: found {row}, expected a row of {len(found):,}, counted from 0")
    rows: Any = decider.reader.rows(found.contexts[row : row + 1])
    played = found.named_actions[row]
    typer.echo(f"row {row}: action {played} was played, reward {found.rewards[row]:g}")
    return rows[0] if isinstance(rows, np.ndarray) else rows


# -- a context that was typed


def typed_context(text: str, decider: Decider) -> Any:
    """JSON, the name of a JSON file, or the values of a row."""
    if text.lstrip().startswith(("{", "[")):
        return _from_json(text, "context")
    path = Path(text)
    if path.suffix == ".json" or (len(text) < 256 and path.is_file()):
        if not path.is_file():
            raise InvalidInput(f"context: found no file {text!r}, {_EXPECTED}")
        return _from_json(path.read_text(), path.name)
    return _from_values(next(csv.reader([text], skipinitialspace=True), []), decider)


def _from_json(text: str, where: str) -> Any:
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{where}: found no JSON ({error}), {_EXPECTED}") from None
    if isinstance(given, dict) and "items" in given and set(given) <= _OFFER:
        more = {name: given[name] for name in ("ids", "exclude") if name in given}
        return Offer(_numbers(given.get("user")), _numbers(given["items"]), **more)
    return _numbers(given)


def _numbers(given: Any) -> Any:
    """Lists of numbers as arrays."""
    if isinstance(given, list) and given and not any(isinstance(part, dict | str) for part in given):
        try:
            return np.array(given, np.float64)
        except (TypeError, ValueError):
            return given
    return given


def _from_values(values: list[str], decider: Decider) -> Any:
    schema = decider.reader.schema
    if not isinstance(schema, Schema):
        try:
            return np.array([float(value) for value in values])
        except ValueError:
            raise InvalidInput(f"context: found {','.join(values)!r}, {_EXPECTED}") from None
    if len(values) != len(schema.fields):
        names = ", ".join(field.name for field in schema.fields)
        raise InvalidInput(f"context: found {len(values)} values, expected {len(schema.fields)}: {names}")
    return {field.name: _value(field, text) for field, text in zip(schema.fields, values, strict=True)}


def _value(field: Field, text: str) -> Any:
    """As the column has it; nothing where it is missing."""
    if not text:
        return None
    if field.kind in ("word", "empty", "nested"):
        return text
    if field.kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return datetime.fromisoformat(text) if field.kind == "time" else float(text)
    except ValueError:
        expected = "a date or time" if field.kind == "time" else "a number"
        raise InvalidInput(f"context, {field.name}: found {text!r}, expected {expected}") from None
