"""`o2pl app`: add and list the applications of the decision service, and make their keys."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from o2pl.cli.database import opened_database
from o2pl.cli.options import Database, list_option, range_option
from o2pl.errors import InvalidInput, nearest

HELP = "Manage the applications of the decision service and their keys."
ADD_EXAMPLES = "`o2pl app add shop`; `o2pl app add banner --kind fixed --actions red,blue`."
KEY_EXAMPLES = "`o2pl app key shop --role read`."


def add_application(
    name: Annotated[str, typer.Argument(help="Name of the application.")],
    kind: Annotated[
        str,
        typer.Option(
            help="`ranked`: each call sends its actions; `fixed`: needs --actions; `continuous`: needs --bounds."
        ),
    ] = "ranked",
    actions: Annotated[str | None, typer.Option(help="Comma-separated action names, for kind `fixed`.")] = None,
    bounds: Annotated[
        str | None, typer.Option(help="Lowest and highest action, such as `0,10`, for kind `continuous`.")
    ] = None,
    rewards: Annotated[str, typer.Option(help="Lowest and highest possible reward.")] = "0,1",
    database: Database = None,
) -> None:
    """Add an application with its own learner, settings, keys and log. Its two keys are shown only once."""
    with opened_database(database, new=True) as store:
        from o2pl.serving import settings

        kinds = [each.value for each in settings.Kind]
        if kind not in kinds:
            raise InvalidInput(f"kind: found {kind!r}, {nearest(kind, kinds)}")
        values: dict[str, Any] = {"rewardRange": list(range_option(rewards))}
        if actions is not None:
            values["actions"] = list_option(actions)
        if bounds is not None:
            values["bounds"] = list(range_option(bounds, "bounds"))
        made = store.add_application(name, kind, settings.made(values, settings.Kind(kind)))
    typer.echo(f"application: {name}")
    typer.echo(f"write key:   {made.write_key}")
    typer.echo(f"read key:    {made.read_key}")
    typer.echo("Copy the keys now: they are not stored. `o2pl app key` makes new ones.", err=True)


def list_applications(database: Database = None) -> None:
    """List the applications with their kinds and numbers of decisions."""
    with opened_database(database) as store:
        from rich.console import Console
        from rich.table import Table

        table = Table("name", "kind", "decisions", "model", "wait", "rewards", "kept")
        for each in store.applications():
            settings, counted = each.settings, store.count_decisions(each.id)
            days = settings.log_retention_days
            table.add_row(
                each.name, each.kind, f"{counted:,}", str(store.served_version(each.id)),
                str(settings.reward_wait_time), "{:g} to {:g}".format(*settings.reward_range),
                "for ever" if days < 0 else f"{days} days",
            )  # fmt: skip
        Console().print(table)


def new_application_key(
    name: Annotated[str, typer.Argument(help="Name of the application.")],
    role: Annotated[
        str, typer.Option(help="`write`: rank, reward, settings; `read`: dashboard and exports.")
    ] = "write",
    replace: Annotated[bool, typer.Option("--replace", help="Revoke the older keys of this role.")] = False,
    grace: Annotated[
        float, typer.Option(min=0, help="With --replace: days until the older keys end, to change them everywhere.")
    ] = 0.0,
    days: Annotated[
        float | None, typer.Option(min=0, help="Days until this key expires. [default: it does not]")
    ] = None,
    database: Database = None,
) -> None:
    """Create another key and print it; it is shown only once."""
    with opened_database(database) as store:
        from o2pl.serving import applications

        application = store.application(name)
        with store.writing() as connection:
            key = applications.add_key(connection, application.id, role, days)
            gone = applications.replace_keys(connection, application.id, role, key, grace) if replace else 0
    typer.echo(key)
    if replace:
        how = f"end in {grace:g} days" if grace else "revoked"
        typer.echo(f"{gone} older keys {how}; running servers notice within seconds", err=True)


def list_application_keys(
    name: Annotated[str, typer.Argument(help="Name of the application.")], database: Database = None
) -> None:
    """List the keys of an application: the first digits of their digests, which are in the log, roles and ages."""
    with opened_database(database) as store, store.reading() as connection:
        from o2pl.serving import applications

        own = applications.find_application(connection, name)
        for row in applications.keys_of(connection, own.id):
            ends = "" if row.expires_at is None else f", ends {_time(row.expires_at)}"
            typer.echo(f"{row.digest[:12]}  {row.role:5}  made {_time(row.created_at)}{ends} (UTC)")


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def revoke_application_key(
    name: Annotated[str, typer.Argument(help="Name of the application.")],
    key: Annotated[str, typer.Argument(help="The first digits of its digest, from `o2pl app keys`.")],
    database: Database = None,
) -> None:
    """Revoke one key. Running servers notice within seconds."""
    with opened_database(database) as store, store.writing() as connection:
        from o2pl.serving import applications

        own = applications.find_application(connection, name)
        role = applications.revoke_key(connection, own.id, key)
    typer.echo(f"a {role} key of {name} is revoked; running servers notice within seconds")
