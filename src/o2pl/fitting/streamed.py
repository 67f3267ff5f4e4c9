"""`o2pl fit` of a log that is larger than memory."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import typer

from o2pl.cluster import connected
from o2pl.errors import InvalidInput
from o2pl.extras import require_extra
from o2pl.fitting.checkpoints import Checkpoints, fingerprint
from o2pl.fitting.choosing import Fit
from o2pl.fitting.out_of_core import MakePasses, fit_out_of_core
from o2pl.fitting.passes import BlockPasses, Passed
from o2pl.fitting.progress import shown
from o2pl.formats.columns import bad_rows_of
from o2pl.formats.command import say_bad
from o2pl.formats.files import kind_of_file
from o2pl.log import Log
from o2pl.validation import RewardRange

ENGINES = ("local", "ray")


class Streamed(NamedTuple):
    """What was asked for."""

    log: Path
    out: Path
    reward_range: RewardRange | None
    only: list[str] | None  # candidates
    confidence: float
    seed: int
    skip_bad: int
    engine: str
    workers: int | None
    address: str | None


def fit_streamed(asked: Streamed) -> Fit:
    """Fit, and save the policy."""
    if asked.engine == "ray":
        require_extra("ray", "the engine 'ray'")
    if kind_of_file(asked.log) != "parquet":
        raise InvalidInput(
            f"{asked.log.name}: found another format than Parquet, expected Parquet for --out-of-core and --engine ray;"
            " `o2pl convert LOG log.parquet` makes it"
        )
    settings = asked._replace(log=Path(), out=Path(), address=None)  # what the result depends on
    work = Checkpoints(asked.out.with_name(f"{asked.out.name}.fitting"), fingerprint(_stamps(asked.log), settings))
    if work.other:
        typer.echo(f"{work.folder}: found parts of other work, which are removed", err=True)
    if work.before:
        typer.echo(f"going on: {work.before} parts were done before", err=True)
    bad = bad_rows_of(asked.log, "parquet", asked.skip_bad)
    with ExitStack() as stack:
        stack.callback(work.remove_empty)
        progress = stack.enter_context(shown())
        passes = _on_ray(asked, stack) if asked.engine == "ray" else None
        found = fit_out_of_core(
            asked.log, work, only=asked.only, reward_range=asked.reward_range, delta=1 - asked.confidence,
            seed=asked.seed, bad=bad, read=progress.read, told=progress.told, passed=progress.passed,
            make_passes=passes,
        )  # fmt: skip
    say_bad(bad)
    found.learner.save(asked.out)
    work.remove()
    return found


def _on_ray(asked: Streamed, stack: ExitStack) -> MakePasses:
    cluster = stack.enter_context(connected(asked.address, asked.workers))

    def made(log: Log, folder: Path, kept: Checkpoints, passed: Passed | None) -> BlockPasses:
        from o2pl.fitting.ray_passes import RayPasses

        return RayPasses(log, folder, kept, passed, cluster, asked.workers, lambda text: typer.echo(text, err=True))

    return made


def _stamps(path: Path) -> list[Any]:
    """What tells whether files have changed."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(file.relative_to(path)), *_stamp(file)) for file in files if file.is_file()]


def _stamp(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns
