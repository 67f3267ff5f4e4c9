"""`o2pl fit` and `o2pl evaluate` for logs larger than memory."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from o2pl.errors import InvalidInput, nearest
from o2pl.extras import require_extra
from o2pl.formats.command import say_bad

if TYPE_CHECKING:
    from o2pl.data.log import Log
    from o2pl.evaluation.results import Evaluation
    from o2pl.fitting.checkpoints import Checkpoints
    from o2pl.fitting.choosing import Fit
    from o2pl.fitting.out_of_core import MakePasses
    from o2pl.fitting.passes import BlockPasses, Passed
    from o2pl.validation import RewardRange

ENGINES = ("local", "ray")

OutOfCore = Annotated[
    bool | None,
    typer.Option(
        "--out-of-core/--in-memory",
        help="Parquet only: keep few rows in memory at a time. [default: if the log needs more than --memory]",
    ),
]
Memory = Annotated[str | None, typer.Option(help="Memory limit, such as `4GB`. [default: half of the free memory]")]
EngineName = Annotated[
    str, typer.Option("--engine", help="`local`, or `ray`: split the rows between the workers of a Ray cluster.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of workers for --engine ray. [default: one per core]")]
Address = Annotated[
    str | None,
    typer.Option(help="Address of a running Ray cluster that can read the files. [default: start a local one]"),
]


def is_streamed(
    log: Path, out_of_core: bool | None, memory: str | None, engine: str, workers: int | None, address: str | None
) -> bool:
    """Return whether the log is processed out of core: it is larger than memory, or the options require it."""
    from o2pl.fitting.out_of_core import bytes_in, free_memory, larger_than
    from o2pl.formats.files import kind_of_file

    if engine not in ENGINES:
        raise InvalidInput(f"engine: found {engine!r}, {nearest(engine, ENGINES)}")
    if engine == "ray":
        require_extra("ray", "the engine 'ray'")
    elif workers is not None or address is not None:
        raise InvalidInput("workers or address: found with --engine local, expected only with --engine ray")
    limit = free_memory() // 2 if memory is None else bytes_in(memory)
    streamed = engine == "ray" or (larger_than(log, limit) if out_of_core is None else out_of_core)
    if streamed and kind_of_file(log) != "parquet":
        raise InvalidInput(
            f"{log.name}: expected Parquet for --out-of-core and --engine ray, found another format. Convert it with"
            " `o2pl convert LOG log.parquet`"
        )
    return streamed


class Streamed(NamedTuple):
    """The options of the command."""

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
    from o2pl.fitting.checkpoints import Checkpoints, fingerprint
    from o2pl.fitting.out_of_core import fit_out_of_core
    from o2pl.fitting.progress import shown
    from o2pl.formats.columns import bad_rows_of

    settings = asked._replace(log=Path(), out=Path(), address=None)  # the settings that the result depends on
    work = Checkpoints(asked.out.with_name(f"{asked.out.name}.fitting"), fingerprint(_stamps(asked.log), settings))
    if work.other:
        typer.echo(f"{work.folder}: removed parts of a run with other settings", err=True)
    if work.before:
        typer.echo(f"resuming: {work.before} parts were already done", err=True)
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
    from o2pl.cluster import connected

    cluster = stack.enter_context(connected(asked.address, asked.workers))

    def made(log: Log, folder: Path, kept: Checkpoints, passed: Passed | None) -> BlockPasses:
        from o2pl.fitting.ray_passes import RayPasses

        return RayPasses(log, folder, kept, passed, cluster, asked.workers, lambda text: typer.echo(text, err=True))

    return made


def evaluate_streamed(
    log: Path, policies: list[str], baseline: str | None, ends: RewardRange | None, delta: float, skip_bad: int,
    engine: str, workers: int | None, address: str | None,
) -> Evaluation:  # fmt: skip
    """Evaluate one policy out of core, with the options of `o2pl evaluate`."""
    from o2pl.cluster import connected
    from o2pl.evaluation.command import named_policy
    from o2pl.fitting.evaluating import evaluate_out_of_core, on_ray
    from o2pl.fitting.progress import shown
    from o2pl.formats.columns import bad_rows_of

    if len(policies) > 1:
        raise InvalidInput(f"policy: found {len(policies)} for a log larger than memory, expected one; or --in-memory")
    against = None if baseline is None else named_policy(baseline, "baseline")
    bad = bad_rows_of(log, "parquet", skip_bad)
    with ExitStack() as stack:
        progress = stack.enter_context(shown("evaluate"))
        spread = on_ray(stack.enter_context(connected(address, workers))) if engine == "ray" else None
        found = evaluate_out_of_core(
            log, named_policy(policies[0]), against, reward_range=ends, delta=delta, bad=bad, read=progress.read,
            spread=spread,
        )  # fmt: skip
    say_bad(bad)
    return found


def _stamps(path: Path) -> list[Any]:
    """Return size and modification time of the files, to detect changes."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(file.relative_to(path)), *_stamp(file)) for file in files if file.is_file()]


def _stamp(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_size, state.st_mtime_ns
