"""The command line: one file per command. Heavy modules are imported only by the commands that need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from o2pl.cli import (
    applications,
    backup,
    convert,
    decide,
    demo,
    describe,
    evaluate,
    explain,
    export,
    fit,
    forget,
    join,
    models,
    retain,
    serve,
    simulate,
    train,
)
from o2pl.cli.errors import one_line_errors
from o2pl.cli.settings_file import environment
from o2pl.version import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,  # local variables may contain API keys
    help="Contextual bandits: learn from logs, evaluate policies, serve decisions.",
    epilog="If you have a log: `o2pl describe LOG`. To serve decisions: `o2pl serve`. To see it work: `o2pl demo`.",
)


def _show_cli_version(asked: bool) -> None:
    if asked:
        typer.echo(f"o2pl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_cli_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Contextual bandits: learn from logs, evaluate policies, serve decisions."""


def _add_command(group: typer.Typer, name: str, command: Callable[..., None], examples: str | None = None) -> None:
    group.command(name, epilog=examples, context_settings=environment(name))(one_line_errors()(command))


_add_command(app, "evaluate", evaluate.evaluate, evaluate.EXAMPLES)
_add_command(app, "demo", demo.demo, demo.EXAMPLES)
_add_command(app, "convert", convert.convert, convert.EXAMPLES)
_add_command(app, "describe", describe.describe, describe.EXAMPLES)
_add_command(app, "fit", fit.fit, fit.EXAMPLES)
_add_command(app, "decide", decide.decide, decide.EXAMPLES)
_add_command(app, "join", join.join, join.EXAMPLES)
_add_command(app, "explain", explain.explain, explain.EXAMPLES)
_add_command(app, "simulate", simulate.simulate, simulate.EXAMPLES)
_add_command(app, "train", train.train, train.EXAMPLES)
_add_command(app, "serve", serve.serve, serve.EXAMPLES)

_applications = typer.Typer(no_args_is_help=True, help=applications.HELP)
_add_command(_applications, "add", applications.add_application, applications.ADD_EXAMPLES)
_add_command(_applications, "list", applications.list_applications)
_add_command(_applications, "key", applications.new_application_key, applications.KEY_EXAMPLES)
_add_command(_applications, "keys", applications.list_application_keys)
_add_command(_applications, "revoke", applications.revoke_application_key)
app.add_typer(_applications, name="app")

_models = typer.Typer(no_args_is_help=True, help=models.HELP)
for _name, _command in models.COMMANDS.items():
    _add_command(_models, _name, _command)
app.add_typer(_models, name="models")

_add_command(app, "backup", backup.back_up, backup.EXAMPLES)
_add_command(app, "export", export.export_log, export.EXAMPLES)
_add_command(app, "forget", forget.forget_person, forget.EXAMPLES)
_add_command(app, "retain", retain.retain, retain.EXAMPLES)


def main() -> None:
    app()
