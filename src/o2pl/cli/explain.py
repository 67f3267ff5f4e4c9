"""`o2pl explain`: explain a saved policy, or an event of the decision service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2pl.cli.database import chosen, opened_database
from o2pl.cli.logs import read_log_and_say
from o2pl.cli.options import LOG_HELP, App, Database
from o2pl.errors import InvalidInput
from o2pl.extras import require_extra

if TYPE_CHECKING:
    from o2pl.engine.decider import Decider
    from o2pl.explaining import Explanation

EXAMPLES = """`o2pl explain model.o2pl --context '{"age": 31, "city": "Rome"}' --figure why.png`;
`o2pl explain model.o2pl --row 17 --log log.parquet`; `o2pl explain EVENT --database o2pl.sqlite` (service)."""

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


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|EVENT",
            help="A saved learner, a published policy, or an event id of the decision service.",
        ),
    ],
    context: ContextOption = None,
    row: RowOption = None,
    log: LogOption = None,
    action: ActionOption = None,
    against: AgainstOption = None,
    figure: FigureOption = None,
    database: Database = None,
    application: App = None,
) -> None:
    """Explain a decision: how much each feature adds to an action compared with another, and the support in the log.

    For an event, the decision is recomputed from the stored data and compared bit for bit.
    """
    of_model = context is not None or row is not None or log is not None
    if of_model and database is not None:
        raise InvalidInput("database: found with --context, --row or --log, expected only with an event id")
    if of_model or (database is None and (Path(what).is_file() or what.endswith(".o2pl"))):
        _explain_policy(Path(what), context, row, log, action, against, figure)
        return
    if figure is not None:
        require_extra("plots", "drawing figures")
    _explain_event(what, database, application, action, against, figure)


# -- a saved policy


def _explain_policy(
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
    from o2pl.encode.from_text import context_from_text
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
    given = (
        _explained_row(learner, decider, log, row) if context is None else context_from_text(context, decider.encoder)
    )
    known = given.ids if isinstance(given, Offer) else decider.names
    named = {"action": action, "against": against}
    chosen = {name: _explained_action(text, known) for name, text in named.items() if text is not None}
    found: Explanation = learner.explain(given, **chosen)
    typer.echo(str(found))
    _draw_explanation(found, figure)


def _draw_explanation(found: Explanation, figure: Path | None) -> None:
    from o2pl.drawing import write_figure

    if figure is not None:
        target = figure if figure.suffix else figure.with_suffix(".png")
        write_figure(found.figure(), target)
        typer.echo(f"figure: {target}")


def _explained_action(text: str, known: Any) -> str | int:
    """Return a known action name, or else an integer if the text is one."""
    return text if text in (known or ()) or not text.isdecimal() else int(text)


def _explained_row(learner: Any, decider: Decider, log: Path | None, row: int | None) -> Any:
    """Return the context of a row for the policy, and print the action that was played."""
    import numpy as np

    from o2pl.engine.decider import Decider

    if log is not None:
        found = read_log_and_say(log, None, 0, need_propensities=False)
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


# -- an event of the service


def _explain_event(
    event: str, database: str | None, application: str | None, action: str | None, against: str | None,
    figure: Path | None,
) -> None:  # fmt: skip
    from o2pl.serving.events import explain_event

    with opened_database(database) as store:
        found = explain_event(store, chosen(store, application), event, action, against)
    for place, one in enumerate(found):
        row, drawn = one.row, one.drawn
        if place:
            typer.echo("")
        of_slot = f", slot {row.slot}" if row.slot else ""
        played = f"{drawn.value:.6g}" if drawn.value is not None else one.names[drawn.action or 0]
        model = f"version {row.model_version}" if row.model_version else "no model yet: uniform"
        kind = "density" if drawn.value is not None else "probability"
        typer.echo(f"event {row.event_id}{of_slot}: {played}, {kind} {drawn.propensity:.6g}, {model}")
        typer.echo("recomputed from the stored data: identical, bit for bit")
        if row.preferred is not None:
            typer.echo(f"the application chose; the policy would have chosen {one.names[row.preferred]}")
        said = "the default reward" if one.outcome is not None and one.outcome.by_default else "reward"
        typer.echo("reward: none yet" if one.outcome is None else f"{said}: {one.outcome.reward:g}")
        if drawn.probabilities is not None:
            shares = sorted(zip(drawn.probabilities.tolist(), one.names, strict=True), reverse=True)
            typer.echo("probabilities: " + ", ".join(f"{name} {share:.4f}" for share, name in shares))
        if one.explanation is not None:
            typer.echo(f"\n{one.explanation}")
            _draw_explanation(one.explanation, figure)
