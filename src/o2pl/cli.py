"""The command line. Heavy modules are imported only by the commands that need them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated

import typer

from o2pl import __version__
from o2pl.demo.command import demo
from o2pl.errors import InvalidInput, MissingExtra
from o2pl.fitting import evaluate_command
from o2pl.fitting.command import fit_log
from o2pl.formats import command as log_commands
from o2pl.serving import commands as store_commands
from o2pl.serving import models_commands
from o2pl.serving.command import serve
from o2pl.serving.explain_command import explain
from o2pl.serving.simulate_command import simulate
from o2pl.serving.train_command import train

FAILED, MISUSED = 1, 2  # exit codes

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,  # local variables may contain API keys
    help="Contextual bandits: learn from logs, evaluate policies, serve decisions.",
    epilog="If you have a log: `o2pl describe LOG`. To serve decisions: `o2pl serve`. To see it work: `o2pl demo`.",
)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Report an error that the user can fix as one line instead of a traceback."""
    try:
        yield
    except (InvalidInput, MissingExtra) as error:
        typer.echo(f"o2pl: {error}", err=True)
        raise typer.Exit(MISUSED) from None
    except BrokenPipeError:  # the reader has closed the pipe: leave that to the shell
        raise
    except OSError as error:  # disk full, no write permission, no such folder
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"o2pl: {where}{error.strerror or error}. No partial file was left behind.", err=True)
        raise typer.Exit(FAILED) from None


def main() -> None:
    app()


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"o2pl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Contextual bandits: learn from logs, evaluate policies, serve decisions."""


app.command("evaluate", epilog=evaluate_command.EXAMPLES)(one_line_errors()(evaluate_command.evaluate_policy))
app.command("demo", epilog="`o2pl demo`, then open the page.")(one_line_errors()(demo))
app.command(
    "convert",
    epilog="`o2pl convert vw.dsjson log.parquet`; `o2pl convert log.parquet vw2.dsjson` (VW learns the same from"
    " both).",
)(one_line_errors()(log_commands.convert))
app.command("describe", epilog="`o2pl describe log.parquet` also suggests the next command.")(
    one_line_errors()(log_commands.describe_log)
)
app.command(
    "fit",
    epilog="`o2pl fit log.parquet --out model.o2pl --rewards 0,1`; `o2pl evaluate newer.parquet --policy model.o2pl`.",
)(one_line_errors()(fit_log))
app.command(
    "explain",
    epilog="""`o2pl explain model.o2pl --context '{"age": 31, "city": "Rome"}' --figure why.png`;
`o2pl explain model.o2pl --row 17 --log log.parquet`; `o2pl explain EVENT --database o2pl.sqlite` (service).""",
)(one_line_errors()(explain))
app.command(
    "simulate", epilog="`o2pl serve` in one terminal, `o2pl simulate http://127.0.0.1:8000 --key KEY` in another."
)(one_line_errors()(simulate))
app.command("train", epilog="`o2pl train --follow --database postgresql://me@host/o2pl --guard`.")(
    one_line_errors()(train)
)

app.command(
    "serve", epilog="`o2pl serve` needs no configuration; `o2pl serve --database postgresql://…` for several servers."
)(one_line_errors()(serve))


applications = typer.Typer(no_args_is_help=True, help="Manage the applications of the decision service and their keys.")
applications.command("add", epilog="`o2pl app add shop`; `o2pl app add banner --kind fixed --actions red,blue`.")(
    one_line_errors()(store_commands.add)
)
applications.command("list")(one_line_errors()(store_commands.list_applications))
applications.command("key", epilog="`o2pl app key shop --role read`.")(one_line_errors()(store_commands.new_key))
app.add_typer(applications, name="app")
versions = typer.Typer(no_args_is_help=True, help="Manage the model versions of the decision service.")
for name, command in models_commands.COMMANDS.items():
    versions.command(name)(one_line_errors()(command))
app.add_typer(versions, name="models")
app.command("backup", epilog="`o2pl backup backup.sqlite`.")(one_line_errors()(store_commands.back_up))
app.command("export", epilog="`o2pl export log.parquet`, then `o2pl describe log.parquet`.")(
    one_line_errors()(store_commands.export_log)
)
app.command("forget", epilog="`o2pl forget --where user.id=17`.")(one_line_errors()(store_commands.forget_person))
app.command("retain", epilog="`o2pl retain --days 90 --archive old`.")(one_line_errors()(store_commands.retain))


if __name__ == "__main__":
    main()
