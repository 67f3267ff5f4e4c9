"""`o2pl explain` of a saved policy: the context is typed, from a file, or from a log."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2pl.errors import InvalidInput
from o2pl.extras import require_extra
from o2pl.formats.command import LOG_HELP, read_and_say

if TYPE_CHECKING:
    from o2pl.encode.schema import Field
    from o2pl.engine.decider import Decider
    from o2pl.explaining import Explanation

_EXPECTED = (
    "expected JSON, such as '{\"age\": 31}' or '[0.5, 2]', the path of a JSON file,"
    " or the values of a row: 31,Rome,phone"
)
_OFFER = {"user", "items", "ids", "exclude"}


ContextOption = Annotated[
    str | None,
    typer.Option(
        help='The context. JSON: `{"age": 31}`, `[0.5, 2]`, `{"user": [...], "items": [[...], ...]}`; the path of a'
        " JSON file; or comma-separated values of a row."
    ),
]
RowOption = Annotated[
    int | None,
    typer.Option(
        min=0, help="A row of a log, counted from 0, instead of --context: of --log, or of the learner's own log."
    ),
]
LogOption = Annotated[Path | None, typer.Option(help=LOG_HELP)]
ActionOption = Annotated[str | None, typer.Option(help="The action to explain. [default: the most likely one]")]
AgainstOption = Annotated[
    str | None, typer.Option(help="The action to compare with. [default: the most likely other one]")
]
FigureOption = Annotated[Path | None, typer.Option(help="Path of the figure, PNG or SVG.")]


def explain_policy(
    model: Path,
    context: str | None = None,
    row: int | None = None,
    log: Path | None = None,
    action: str | None = None,
    against: str | None = None,
    figure: Path | None = None,
) -> None:
    """Explain a decision: how much each feature adds to an action compared with another, and the support in the log."""
    from o2pl.data.offers import Offer
    from o2pl.engine.decider import Decider
    from o2pl.learners.base import load

    if figure is not None:
        require_extra("plots", "drawing figures")
    if (context is None) == (row is None):
        raise InvalidInput("context: expected either --context or --row, found both or neither")
    if log is not None and row is None:
        raise InvalidInput("log: found --log without --row, expected --row with the number of a row")
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
    from o2pl.drawing import write_figure

    if figure is not None:
        target = figure if figure.suffix else figure.with_suffix(".png")
        write_figure(found.figure(), target)
        typer.echo(f"figure: {target}")


def _as_action(text: str, known: Any) -> Any:
    """Return a known action name, or else an integer if the text is one."""
    return text if text in (known or ()) or not text.isdecimal() else int(text)


# -- a row of a log


def row_of_log(learner: Any, decider: Decider, log: Path | None, row: int | None) -> Any:
    """Return the context of a row for the policy, and print the action that was played."""
    import numpy as np

    from o2pl.engine.decider import Decider

    if log is not None:
        found = read_and_say(log, None, 0, need_propensities=False)
    elif isinstance(learner, Decider):
        raise InvalidInput("row: found a published policy, which has no log; add --log, or use --context")
    else:
        found = learner.log_
    if row is None or row >= len(found):
        raise InvalidInput(f"row: found {row}, expected a row number from 0 to {len(found) - 1:,}")
    rows: Any = decider.encoder.encode(found.contexts[row : row + 1])
    played = found.named_actions[row]
    typer.echo(f"row {row}: action {played} was played, reward {found.rewards[row]:g}")
    return rows[0] if isinstance(rows, np.ndarray) else rows


# -- a typed context


def typed_context(text: str, decider: Decider) -> Any:
    """Return the context from JSON, the path of a JSON file, or the values of a row."""
    if text.lstrip().startswith(("{", "[")):
        return _from_json(text, "context")
    path = Path(text)
    if path.suffix == ".json" or (len(text) < 256 and path.is_file()):
        if not path.is_file():
            raise InvalidInput(f"context: found no file {text!r}, {_EXPECTED}")
        return _from_json(path.read_text(), path.name)
    return _from_values(next(csv.reader([text], skipinitialspace=True), []), decider)


def _from_json(text: str, where: str) -> Any:
    from o2pl.data.offers import Offer

    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{where}: found invalid JSON ({error}), {_EXPECTED}") from None
    if isinstance(given, dict) and "items" in given and set(given) <= _OFFER:
        more = {name: given[name] for name in ("ids", "exclude") if name in given}
        return Offer(_numbers(given.get("user")), _numbers(given["items"]), **more)
    return _numbers(given)


def _numbers(given: Any) -> Any:
    """Return lists of numbers as arrays."""
    import numpy as np

    if isinstance(given, list) and given and not any(isinstance(part, dict | str) for part in given):
        try:
            return np.array(given, np.float64)
        except (TypeError, ValueError):
            return given
    return given


def _from_values(values: list[str], decider: Decider) -> Any:
    import numpy as np

    from o2pl.encode.schema import Schema

    schema = decider.encoder.schema
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
    """Convert text to the column's type; an empty text is a missing value."""
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
