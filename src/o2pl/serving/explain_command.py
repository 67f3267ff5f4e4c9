"""`o2pl explain`: explain a saved policy, or an event of the decision service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from o2pl.errors import InvalidInput
from o2pl.extras import require_extra
from o2pl.formats.explain import (
    ActionOption,
    AgainstOption,
    ContextOption,
    FigureOption,
    LogOption,
    RowOption,
    draw,
    explain_policy,
)
from o2pl.serving.commands import App, Database


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
        explain_policy(Path(what), context, row, log, action, against, figure)
        return
    if figure is not None:
        require_extra("plots", "drawing figures")
    _explain_event(what, database, application, action, against, figure)


def _explain_event(
    event: str, database: str | None, application: str | None, action: str | None, against: str | None,
    figure: Path | None,
) -> None:  # fmt: skip
    from o2pl.serving.commands import chosen, opened
    from o2pl.serving.events import explain_event

    with opened(database) as store:
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
            draw(one.explanation, figure)
