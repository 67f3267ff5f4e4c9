"""`o2pl fit`, of a log in memory or larger than that; with `--incumbent`, safe improvement."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2pl.cli.errors import interruption_is_no_error
from o2pl.cli.logs import read_log_and_say, say_bad_log_rows
from o2pl.cli.options import (
    Address,
    EngineName,
    Log,
    Map,
    Memory,
    OutOfCore,
    SkipBad,
    Workers,
    list_option,
    range_option,
)
from o2pl.errors import InvalidInput
from o2pl.extras import require_extra

if TYPE_CHECKING:
    from o2pl.data.interactions import Interactions
    from o2pl.fitting.choice import Fit
    from o2pl.fitting.fit_out_of_core import Streamed
    from o2pl.fitting.pass_checkpoints import PassCheckpoints
    from o2pl.protocols import Array

EXAMPLES = "`o2pl fit log.parquet --out model.o2pl --rewards 0,1`; `o2pl evaluate newer.parquet --policy model.o2pl`."
_WIDE = 100  # characters; the table of candidates is wrapped in narrower terminals


def fit(
    log: Log,
    out: Annotated[Path, typer.Option(help="Path of the saved model, such as `model.o2pl`.")],
    rewards: Annotated[
        str | None,
        typer.Option(help="Lowest and highest possible reward, such as `0,1`. [default: taken from the log]"),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="MODEL",
            help="A saved learner that goes on with this log; OUT may be the same file. Rows that it has count once.",
        ),
    ] = None,
    incumbent: Annotated[
        str | None,
        typer.Option(
            help="Safe improvement: replace the policy that made the log only where the log supports it."
            " `logged`, or the saved learner that made the log."
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Joint confidence level of the candidates' intervals; with --incumbent, the confidence that the new"
            " policy"
            " is better. [default: 0.95; with --incumbent 0.9]"
        ),
    ] = None,
    candidates: Annotated[
        str | None, typer.Option(help="Comma-separated name prefixes of candidates, such as `bandit,o2pl linear`.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Path of a figure of the candidates, PNG or SVG.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the held-out split and of the learner.")] = 0,
    skip_bad: SkipBad = 0,
    mapping: Map = None,
    out_of_core: OutOfCore = None,
    memory: Memory = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Learn from a log: compare several learners on held-out rows and save the best.

    Candidates are `Bandit`, its members one by one, and `O2PL` with several policy classes, penalties and weight
    decays. Each learns from one part of the log and is evaluated on the rest by a doubly robust estimate with a
    confidence interval. The candidate with the highest lower bound is chosen and learns from all rows. Finished parts
    are saved next to OUT: if the command is killed, run it again to resume. It ends with the same model, bit for bit.

    With --continue, a saved learner learns from the rows that are new to it: yesterday's model, and today's rows.

    Parquet logs larger than memory are read in small blocks: candidates are compared on a sample of 100,000 rows, and
    the best one learns from all rows. The model is then a policy without its log: it can decide and be evaluated.
    """
    from o2pl.fitting.candidate_learners import guessed_range_for_candidate_learners
    from o2pl.fitting.fit_out_of_core import Streamed, is_out_of_core
    from o2pl.fitting.pass_checkpoints import PassCheckpoints, fingerprint

    if figure is not None:
        require_extra("plots", "drawing figures")
    if not out.parent.is_dir():
        raise InvalidInput(f"out: found no folder {str(out.parent)!r}, expected one to save {out.name!r} in")
    if incumbent is not None and (candidates is not None or figure is not None):
        raise InvalidInput("incumbent: found with --candidates or --figure, expected without them")
    ends = None if rewards is None else range_option(rewards)
    if model is not None:
        if any((incumbent, confidence, candidates, figure, out_of_core, memory, workers, address, engine != "local")):
            raise InvalidInput(
                "continue: found with another way to fit, expected only LOG, --out, --rewards, --skip-bad, --map"
            )
        _continue_fit(model, log, out, ends, skip_bad, mapping)
        return
    names = None if candidates is None else list_option(candidates)
    if is_out_of_core(log, out_of_core, memory, engine, workers, address):
        if incumbent is not None:
            raise InvalidInput("incumbent: found with an out-of-core fit, expected --in-memory")
        asked = Streamed(log, out, ends, names, confidence or 0.95, seed, skip_bad, engine, workers, address)
        with interruption_is_no_error(f"Finished parts are saved next to {out}. Run the same command to resume."):
            chosen = _fit_out_of_core(asked)
        _show_fit(chosen, figure)
        _say_after_fit(out, chosen.reward_range)
        return
    found = read_log_and_say(log, ends, skip_bad, need_propensities=False, mapping=mapping)
    if found.reward_range is None:
        found = found.changed(reward_range=guessed_range_for_candidate_learners(found.rewards))
    work = PassCheckpoints(
        out.with_name(f"{out.name}.fitting"), fingerprint(found, (incumbent, confidence, candidates, seed))
    )
    _say_fit_resumed(work)
    with interruption_is_no_error(f"Finished parts are saved in {work.folder}. Run the same command to resume."):
        if incumbent is None:
            learner = _fit_in_memory(found, work, names, confidence or 0.95, figure, seed)
        else:
            learner = _fit_improvement(found, work, incumbent, confidence or 0.9, seed)
    learner.save(out)
    work.remove()
    _say_after_fit(out, found.reward_range)


def _continue_fit(
    model: Path, log: Path, out: Path, ends: tuple[float, float] | None, skip_bad: int, mapping: str | None
) -> None:
    from o2pl.fitting.continuing import continued, learner_to_continue

    learner = learner_to_continue(model, ends)
    found = continued(learner, read_log_and_say(log, learner.reward_range, skip_bad, mapping=mapping))
    learner.save(out)
    typer.echo(
        f"{found.new:,} new rows; {found.known:,} were known or came twice, and count once;"
        f" {len(learner.log_):,} in all"
    )
    _say_after_fit(out, learner.reward_range)


def _fit_in_memory(
    log: Interactions, work: PassCheckpoints, only: list[str] | None, confidence: float, figure: Path | None, seed: int
) -> Any:
    from o2pl.cli.progress import shown_progress
    from o2pl.fitting.candidate_learners import candidates_for, some_candidate_learners
    from o2pl.fitting.choice import fit as fitted

    ends: Any = log.reward_range
    every = candidates_for(log, ends, seed)
    with shown_progress() as progress:
        found = fitted(
            log, candidates=every if only is None else some_candidate_learners(every, only), delta=1 - confidence,
            seed=seed, kept=work, told=progress.told,
        )  # fmt: skip
    _show_fit(found, figure)
    return found.learner


def _fit_out_of_core(asked: Streamed) -> Fit:
    """Fit, and save the policy."""
    from o2pl.cli.progress import shown_progress
    from o2pl.fitting.fit_out_of_core import fit_out_of_core
    from o2pl.fitting.pass_checkpoints import PassCheckpoints, fingerprint, pass_checkpoint_stamps
    from o2pl.formats.log_tables import bad_rows_of_log_table

    stamp = fingerprint(pass_checkpoint_stamps(asked.log), asked.settings)
    work = PassCheckpoints(asked.out.with_name(f"{asked.out.name}.fitting"), stamp)
    _say_fit_resumed(work)
    bad = bad_rows_of_log_table(asked.log, "parquet", asked.skip_bad)
    with ExitStack() as stack:
        stack.callback(work.remove_empty)
        progress = stack.enter_context(shown_progress())
        passes = None
        if asked.engine == "ray":
            from o2pl.cluster import connected_cluster
            from o2pl.fitting.ray_passes import passes_on

            cluster = stack.enter_context(connected_cluster(asked.address, asked.workers))
            passes = passes_on(cluster, asked.workers, _warn_of_fit)
        found = fit_out_of_core(
            asked.log, work, only=asked.only, reward_range=asked.reward_range, delta=1 - asked.confidence,
            seed=asked.seed, bad=bad, read=progress.read, told=progress.told, passed=progress.passed,
            make_passes=passes,
        )  # fmt: skip
    say_bad_log_rows(bad)
    found.learner.save(asked.out)
    work.remove()
    return found


def _fit_improvement(log: Interactions, work: PassCheckpoints, incumbent: str, confidence: float, seed: int) -> Any:
    """Improve the incumbent safely, and print the candidates and the verdict."""
    from rich.console import Console

    from o2pl.cli.progress import shown_progress
    from o2pl.fitting.fit_report import fit_improvement_lines, fit_improvement_table
    from o2pl.fitting.improving import improve
    from o2pl.learners.incumbent import SafeImprovement

    folds, done = SafeImprovement().folds, 0
    with shown_progress() as progress:

        def kept(name: str, compute: Callable[[], Array]) -> Array:
            nonlocal done
            found = work(name, compute)
            done += 1
            progress.told(name, done, folds)
            return found

        improved = improve(log, incumbent, confidence=confidence, seed=seed, kept=kept, warn=_warn_of_fit)
    Console().print(fit_improvement_table(improved.learner.improvements_, improved.learner.improvement_))
    _say_of_fit(["", *fit_improvement_lines(improved)])
    return improved.learner


# -- what is printed


def _show_fit(found: Fit, figure: Path | None) -> None:
    from rich.console import Console

    from o2pl.drawing import write_figure
    from o2pl.fitting.fit_report import fit_lines, fit_table

    Console(width=max(Console().width, _WIDE)).print(fit_table(found))
    _say_of_fit(["", *fit_lines(found)])
    if figure is not None:
        target = figure if figure.suffix else figure.with_suffix(".png")
        write_figure(found.figure(), target)
        typer.echo(f"figure: {target}")


def _say_fit_resumed(work: PassCheckpoints) -> None:
    if work.other:
        _warn_of_fit(f"{work.folder}: removed parts of a run with other settings")
    if work.before:
        _warn_of_fit(f"resuming: {work.before} parts were already done")


def _say_after_fit(out: Path, ends: tuple[float, float] | None) -> None:
    rewards = "" if ends is None else f" --rewards {ends[0]:g},{ends[1]:g}"
    typer.echo(f"model: {out}")
    typer.echo(f"next: o2pl evaluate NEWER_LOG --policy {out} --baseline logged{rewards}")


def _say_of_fit(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line)
    sys.stdout.flush()


def _warn_of_fit(text: str) -> None:
    typer.echo(text, err=True)
