"""`o2pl serve`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from o2pl.cli.database import open_database_store
from o2pl.cli.settings_file import Config
from o2pl.errors import InvalidInput
from o2pl.extras import require_extra

if TYPE_CHECKING:
    from o2pl.serving.applications import NewApplication
    from o2pl.serving.store import Store

EXAMPLES = "`o2pl serve` needs no configuration; `o2pl serve --database postgresql://…` for several servers."
_APPLICATION = "default"
_JOURNAL = "JOURNAL_STREAM"  # set by systemd
_ONCE = "Copy these keys: they are shown only once. To make more: o2pl app key default --role write"
_EXAMPLE = {
    "contextFeatures": [{"timeOfDay": "morning"}],
    "actions": [
        {"id": "news", "features": [{"topic": "politics"}]},
        {"id": "sports", "features": [{"topic": "tennis"}]},
    ],
}


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on. Use TLS for access from other machines: see the docs.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on. 0: any free port.")] = 8000,
    database: Annotated[
        str | None,
        typer.Option(
            envvar="O2PL_DATABASE",
            allow_from_autoenv=False,
            help="A SQLite file, or `postgresql://…`. [default: o2pl.sqlite]",
        ),
    ] = None,
    trainer: Annotated[
        bool,
        typer.Option(
            "--trainer/--no-trainer", help="Also start the training process. Otherwise run `o2pl train --follow`."
        ),
    ] = True,
    guard: Annotated[
        bool,
        typer.Option(
            "--guard", help="Roll back a model that is worse than the application's baseline, with confidence."
        ),
    ] = False,
    rate_limit: Annotated[
        float,
        typer.Option(
            min=0,
            help="Rate limit per application, in decisions, rewards and calls per second, over time. 0: no limit.",
        ),
    ] = 5000.0,
    max_body: Annotated[int, typer.Option(min=1024, help="Largest request body, in bytes.")] = 1 << 20,
    max_lag: Annotated[
        float, typer.Option(min=0, help="Seconds that learning may be behind before `/ready` says 503. 0: any.")
    ] = 0.0,
    log_calls: Annotated[bool, typer.Option("--log-calls", help="Log every call, not only failed and slow ones.")] = (
        False
    ),
    traces: Annotated[
        str | None,
        typer.Option(help="OTLP/HTTP address for OpenTelemetry traces, such as `http://localhost:4318/v1/traces`."),
    ] = None,
    operator_key: Annotated[
        str | None,
        typer.Option(
            help="A key for `/metrics` of all applications, at least 20 characters. Give it by file or environment:"
            " others can read flags."
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Serve decisions over HTTP, store them, and learn from their rewards.

    The first start creates the database with an application named `default`, and shows its keys once.
    """
    require_extra("serve", "the decision service")
    if operator_key is not None and len(operator_key) < 20:
        raise InvalidInput("operator-key: found fewer than 20 characters; to make one: openssl rand -hex 32")
    if traces is not None:
        require_extra("otel", "traces")
    from o2pl.serving import server

    with server.listen(host, port) as listening:  # first, since the keys of a new database are shown only once
        store, place = open_database_store(database)
        made = _first_application_to_serve(store)
        address = f"http://{_served_host(host)}:{listening.getsockname()[1]}"
        _greet_when_serving(place, address, made)
        arguments = ["train", "--follow", *(["--guard"] if guard else []), *_serve_file(config)] if trainer else None
        server.run(
            store, listening, place, arguments, rate_limit, max_body, max_lag, log_calls,
            ready=lambda: typer.echo(f"ready: {address}"), traces=traces, operator_key=operator_key,
        )  # fmt: skip


def _serve_file(config: Path | None) -> list[str]:
    return [] if config is None else ["--config", str(config)]


def _first_application_to_serve(store: Store) -> NewApplication | None:
    """Add the application of a new database; None: it has one, maybe of another server that starts now."""
    if store.applications():
        return None
    try:
        return store.add_application(_APPLICATION)
    except InvalidInput:
        if store.applications():
            return None
        raise


def _serve_keys_in_file(keys: list[str]) -> list[str]:
    """Write the keys to a file of the owner: a journal keeps what is printed, and others read it."""
    with os.fdopen(os.open("o2pl.keys", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
        file.write("\n".join(keys) + "\n")
    return [f"keys: in {Path('o2pl.keys').resolve()}; copy them, then delete the file"]


def _served_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _greet_when_serving(database: str, address: str, made: NewApplication | None) -> None:
    place = "PostgreSQL" if "://" in database else str(Path(database).resolve())
    lines = [f"store: {place}"]
    if made is not None:
        keys = [f"write key: {made.write_key}", f"read key:  {made.read_key}"]
        lines += [
            f"application: {_APPLICATION}",
            *(_serve_keys_in_file(keys) if _JOURNAL in os.environ else [*keys, _ONCE]),
        ]
    key = "$O2PL_KEY" if made is None or _JOURNAL in os.environ else made.write_key
    lines += [
        f"dashboard: {address}/ (log in with the read key)",
        "try it:",
        f'  curl -s {address}/personalizer/v1.0/rank -H "Ocp-Apim-Subscription-Key: {key}" \\',
        f"    -H 'Content-Type: application/json' -d '{json.dumps(_EXAMPLE)}'",
        "starting …",
    ]
    for line in lines:
        typer.echo(line)
    if made is None and "O2PL_KEY" not in os.environ:
        typer.echo("(Replace O2PL_KEY by the write key from the first start.)")
