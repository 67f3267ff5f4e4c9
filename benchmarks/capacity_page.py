"""`python -m benchmarks.capacity_page`: docs/capacity.md from results.json and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import page
from benchmarks.capacity import COUNTS
from benchmarks.serving import ACTIONS, CONNECTIONS, FEATURES

PAGE = Path(__file__).parents[1] / "docs" / "capacity.md"
BUSY = 10_000  # calls per second, on paper
MONTH = 1e9  # events a month, on paper
_SECONDS = 30 * 86400
_PEAK = 3  # times the mean, at the busiest hour
_FULL = 0.6  # of a core that may be busy, so that calls do not wait

INTRODUCTION = f"""# Capacity

What the [decision service](service.md) takes, measured, and what larger loads need, on paper. A call is a rank of
{ACTIONS} actions with {FEATURES} features each (half words, half numbers), on disk before it is answered.
`python -m benchmarks --rows 'capacity_*'` measures it again; this page is made from the stored numbers.
"""


def rendered(results: Mapping[str, Any]) -> str:
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    yield INTRODUCTION
    found = {n: row for n, row in results.items() if n.startswith(("capacity_", "serve_")) and "ratio" in row}
    if not found:
        yield "Not measured yet."
        return
    about, dates = results["about"], sorted({row["date"] for row in found.values()})
    yield (
        f"Measured on {dates[-1]} on {about['cores']} cores of {about['cpu']}, shared by servers, PostgreSQL and the"
        " client: rates are those of a small machine under its own load generator. CPU time per call says"
        " more about yours."
    )
    load = max(row.get("load", 0.0) for row in found.values())
    if load > page.BUSY:
        yield (
            f"\n**Preliminary:** the machine was busy otherwise (load {load:.0f} on {about['cores']} cores), which"
            " takes most of the calls per second and adds to latencies. CPU times and bytes suffer little from it."
        )
    yield from _connections(found)
    yield from _calls(found)
    yield from _cost(found)
    yield from _paper(found)


def _connections(found: Mapping[str, Any]) -> Iterator[str]:
    rows = [(call, n, found.get(f"serve_{call}_{n}")) for call in ("rank", "reward") for n in CONNECTIONS]
    if not any(row for _, _, row in rows):
        return
    yield "\n## Calls per second, one process on SQLite\n"
    yield "Beside a minimal FastAPI app that parses the same calls and stores one row with the same group commit.\n"
    yield "| call | connections | calls per second | the minimal app | ratio (spread) | |"
    yield "|---|---|---|---|---|---|"
    for call, n, row in rows:
        if row is not None:
            ratio = f"{page.short(row['ratio'])} ({page.spread(row)})"
            numbers = f"{page.short(row['o2pl'])} | {page.short(row['peer'])} | {ratio}"
            yield f"| {call} | {n} | {numbers} | {row.get('note', '')} |"


def _calls(found: Mapping[str, Any]) -> Iterator[str]:
    rows = [(n, found[f"capacity_calls_{n}"]) for n in COUNTS if f"capacity_calls_{n}" in found]
    if not rows:
        return
    yield "\n## Calls per second, on one PostgreSQL\n"
    yield "| server processes | calls per second | against one process (spread) | |"
    yield "|---|---|---|---|"
    for n, row in rows:
        against = f"{page.short(row['ratio'])} ({page.spread(row)})" if n > 1 else ""
        yield f"| {n} | {page.short(row['o2pl'])} | {against} | {row.get('note', '')} |"
    if "capacity_calls_1" in found:
        yield (
            f"\nOne process on SQLite, in the same run: {page.short(found['capacity_calls_1']['peer'])} calls per"
            " second. 32 connections each."
        )
    cores = found.get("capacity_cpu_rank")
    if cores is not None:
        yield (
            "\n**What saturates first** is the CPU of this machine: at every number of processes its cores are busy"
            f" with servers, database and client together. Of the two that a call needs, {_first(cores)}. Writes are"
            " committed in groups, under one lock that keeps ids in the order in which they become visible: more"
            " processes mean smaller groups each, not more commits at once, so on a large machine that lock is the"
            " next limit."
        )


def _first(row: Mapping[str, Any]) -> str:
    ours, theirs = row["o2pl"], row["peer"]
    one, two = ("the server", "PostgreSQL") if ours >= theirs else ("PostgreSQL", "the server")
    return f"{one} takes more, {max(ours, theirs):.0f} µs against {min(ours, theirs):.0f} µs of {two}"


def _cost(found: Mapping[str, Any]) -> Iterator[str]:
    yield "\n## What an event costs\n"
    yield "| | | |"
    yield "|---|---|---|"
    for name, said, beside in (
        ("capacity_cpu_rank", "CPU time of the server for a rank", "PostgreSQL's for the same"),
        ("capacity_cpu_reward", "CPU time of the server for a reward", "PostgreSQL's for the same"),
        (
            "capacity_bytes_postgresql",
            "on disk in PostgreSQL: decision, reward, outcome, indexes",
            "bodies of its calls",
        ),
        ("serve_rank_p99", "99 of 100 rank calls are answered within", "a minimal app"),
        ("serve_freshness", "age of the newest event in the served parameters at its worst", "one version every 5 s"),
        ("serve_start", "until `o2pl serve` is ready, 1e6 events in SQLite", "a store without events"),
        ("serve_first_rank", "until it has answered its first rank call", "a store without events"),
        ("capacity_bytes_sqlite", "on disk in SQLite", "bodies of its calls"),
        (
            "capacity_training",
            "CPU time of the trainer for 1e6 events: join, learn, sum, publish",
            "of half as long a log",
        ),
    ):
        if name in found:
            row = found[name]
            ours, theirs = (f"{page.short(row[which])} {row['unit']}" for which in ("o2pl", "peer"))
            yield f"| {said} | {ours} | {beside}: {theirs} |"


def _paper(found: Mapping[str, Any]) -> Iterator[str]:
    needed = ("capacity_cpu_rank", "capacity_cpu_reward", "capacity_bytes_postgresql", "capacity_training")
    if any(name not in found for name in needed):
        return
    rank, reward, size, training = (found[name] for name in needed)
    yield f"\n## {BUSY:,} calls per second, on paper\n"
    half = BUSY / 2  # every decision has its reward
    servers = half * (rank["o2pl"] + reward["o2pl"]) / 1e6 / _FULL
    stored = half * (rank["peer"] + reward["peer"]) / 1e6 / _FULL
    daily = half * 86400 * size["o2pl"]
    behind = half * training["o2pl"] / 1e6
    yield (
        f"Half of them decisions, half rewards, cores {_FULL:.0%} busy. Nothing here was run at that size.\n\n"
        f"- **Servers**: {servers:.1f} cores, as many processes, behind one proxy.\n"
        f"- **PostgreSQL**: {stored:.1f} cores, and a log device that takes {half * size['o2pl'] / 1e6:.0f} MB/s. One"
        " lock orders commits: beyond what one database commits, give applications databases of their own (a key"
        " belongs to one application, so a proxy can route by key).\n"
        f"- **Disk**: {daily / 1e12:.1f} TB a day. Partition `decisions`, `rewards` and `outcomes` by day, so that"
        " retention drops a partition and no index outgrows memory; export days to Parquet before they go.\n"
        f"- **Training**: {behind:.1f} CPU seconds for each second"
        + (
            ", within one core: one trainer keeps up."
            if behind < _FULL
            else ": more than one core should be asked for. Learn from a share of the events, raise"
            " `modelExportFrequency`, or fit days of Parquet with several workers and import the policy."
        )
    )
    yield f"\n## {MONTH:.0e} events a month, on paper\n".replace("e+0", "e")
    mean = MONTH / _SECONDS
    yield (
        f"{mean:,.0f} events per second on average, {_PEAK * mean:,.0f} at a peak of {_PEAK} times that.\n\n"
        f"- **Servers**: {_PEAK * mean * (rank['o2pl'] + reward['o2pl']) / 1e6 / _FULL:.1f} cores at the peak."
        f" **PostgreSQL**: {_PEAK * mean * (rank['peer'] + reward['peer']) / 1e6 / _FULL:.1f}.\n"
        f"- **Disk**: {MONTH * size['o2pl'] / 1e12:.1f} TB a month in PostgreSQL. Keep a week there"
        f" ({MONTH * size['o2pl'] * 7 / 30 / 1e12:.1f} TB, `logRetentionDays` 7) and the rest as Parquet.\n"
        f"- **Training**: {MONTH * training['o2pl'] / 1e6 / 3600:.0f} CPU hours a month for the stream. To learn once"
        " more from a whole month, fit its Parquet out of core, with several workers on Ray."
    )


def write() -> None:
    PAGE.write_text(rendered(page.stored()))


if __name__ == "__main__":
    write()
