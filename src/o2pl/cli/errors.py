"""Errors of commands: one line that says what to do, and the exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import typer

from o2pl.errors import InvalidInput, MissingExtra

FAILED, MISUSED = 1, 2  # exit codes
INTERRUPTED = 130  # the one that shells expect after Ctrl-C


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


@contextlib.contextmanager
def interruption_is_no_error(resume: str) -> Iterator[None]:
    """After Ctrl-C, say how to resume, and exit."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"stopped. {resume}", err=True)
        raise typer.Exit(INTERRUPTED) from None
