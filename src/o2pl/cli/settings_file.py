"""Settings of a command from a TOML file: what no flag and no environment variable says."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from o2pl.cli.errors import one_line_errors
from o2pl.errors import InvalidInput, nearest

COMMANDS = ("serve", "train")  # a table each, with their options as keys
_DATABASE = "database"  # of both, before the tables
_NOT_SETTINGS = ("config", "help", _DATABASE)
_VARIABLE = "O2PL_CONFIG"


def environment(command: str) -> dict[str, Any]:
    """Return the context settings by which a command's options are read from variables such as O2PL_SERVE_PORT."""
    return {"auto_envvar_prefix": f"O2PL_{command.upper()}"} if command in COMMANDS else {}


def _read(ctx: typer.Context, path: Path | None) -> Path | None:
    if path is not None and not ctx.resilient_parsing:
        with one_line_errors():
            ctx.default_map = _checked(ctx, path, _parsed(path))
    return path


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InvalidInput(f"config: found no file {str(path)!r}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"config: {path} is not TOML ({error})") from None


def _checked(ctx: typer.Context, path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Return the values for this command. The tables of the others are checked too."""
    root: Any = ctx.find_root().command
    own: dict[str, Any] = {}
    for table, values in given.items():
        if table == _DATABASE:
            own[_DATABASE] = str(values)
            continue
        if table not in COMMANDS:
            raise InvalidInput(f"config: {path}: found {table!r}, {nearest(table, [_DATABASE, *COMMANDS])}")
        if not isinstance(values, dict):
            raise InvalidInput(f"config: {path}: found {table} = {values!r}, expected a table: [{table}]")
        command: Any = root.get_command(ctx, table)
        options = {_name(each): each for each in command.params if each.name not in _NOT_SETTINGS}
        for name, value in values.items():
            if name not in options:
                raise InvalidInput(f"config: {path}, [{table}]: found {name!r}, {nearest(name, list(options))}")
            _check_value(ctx, f"config: {path}, [{table}] {name}", options[name], value)
            if table == ctx.info_name:
                own[options[name].name] = value
    return own


def _name(option: Any) -> str:
    """Return the name of an option as it is typed, without dashes."""
    return str(max(option.opts, key=len)).removeprefix("--")


def _check_value(ctx: typer.Context, where: str, option: Any, value: Any) -> None:
    try:
        if isinstance(value, bool) != bool(option.is_flag) or isinstance(value, dict | list):
            raise ValueError(f"{value!r} is not {'true or false' if option.is_flag else 'a single value'}")
        option.process_value(ctx, value)
    except Exception as error:  # what a type of click says of a value
        raise InvalidInput(f"{where}: {getattr(error, 'message', error)}") from None


Config = Annotated[
    Path | None,
    typer.Option(
        "--config", envvar=_VARIABLE, allow_from_autoenv=False, is_eager=True, callback=_read,
        help="TOML file with these options, in the tables `[serve]` and `[train]`. A flag comes before an environment"
        " variable, and that before the file.",
    ),
]  # fmt: skip
