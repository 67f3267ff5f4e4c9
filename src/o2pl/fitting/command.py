"""`o2pl fit`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2pl.errors import InvalidInput
from o2pl.extras import require_extra
from o2pl.fitting.streamed import Address, EngineName, Memory, OutOfCore, Streamed, Workers, fit_streamed, is_streamed
from o2pl.formats.command import Log, SkipBad, read_and_say

if TYPE_CHECKING:
    from o2pl.data.interactions import Interactions
    from o2pl.fitting.checkpoints import Checkpoints
    from o2pl.fitting.choosing import Fit
    from o2pl.protocols import Array, Floats

_INTERRUPTED = 130  # exit code that shells expect after Ctrl-C
_WIDE = 100  # characters; the table of candidates is wrapped in narrower terminals
_FAR = 0.02  # largest mean difference between a saved incumbent's and the logged probabilities


def fit_log(
    log: Log,
    out: Annotated[Path, typer.Option(help="Path of the saved model, such as `model.o2pl`.")],
    rewards: Annotated[
        str | None,
        typer.Option(help="Lowest and highest possible reward, such as `0,1`. [default: taken from the log]"),
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

    Parquet logs larger than memory are read in small blocks: candidates are compared on a sample of 100,000 rows, and
    the best one learns from all rows. The model is then a policy without its log: it can decide and be evaluated.
    """
    from o2pl.evaluation.command import reward_range
    from o2pl.fitting.candidates import guessed_range
    from o2pl.fitting.checkpoints import Checkpoints, fingerprint

    if figure is not None:
        require_extra("plots", "drawing figures")
    if not out.parent.is_dir():
        raise InvalidInput(f"out: found no folder {str(out.parent)!r}, expected one to save {out.name!r} in")
    if incumbent is not None and (candidates is not None or figure is not None):
        raise InvalidInput("incumbent: found with --candidates or --figure, expected without them")
    ends = None if rewards is None else reward_range(rewards)
    if is_streamed(log, out_of_core, memory, engine, workers, address):
        if incumbent is not None:
            raise InvalidInput("incumbent: found with an out-of-core fit, expected --in-memory")
        names = None if candidates is None else _names(candidates)
        asked = Streamed(log, out, ends, names, confidence or 0.95, seed, skip_bad, engine, workers, address)
        _stream(asked, figure)
        return
    found = read_and_say(log, ends, skip_bad, need_propensities=False)
    if found.reward_range is None:
        found = found.changed(reward_range=guessed_range(found.rewards))
    settings = (incumbent, confidence, candidates, seed)
    work = Checkpoints(out.with_name(f"{out.name}.fitting"), fingerprint(found, settings))
    if work.other:
        typer.echo(f"{work.folder}: removed parts of a run with other settings", err=True)
    if work.before:
        typer.echo(f"resuming: {work.before} parts were already done", err=True)
    try:
        if incumbent is None:
            learner = _choose(found, work, candidates, confidence or 0.95, figure, seed)
        else:
            learner = _improve(found, work, incumbent, confidence or 0.9, seed)
    except KeyboardInterrupt:
        typer.echo(f"stopped. Finished parts are saved in {work.folder}. Run the same command to resume.", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    learner.save(out)
    work.remove()
    _say_next(out, *(found.reward_range or (0.0, 1.0)))


def _say_next(out: Path, low: float, high: float) -> None:
    typer.echo(f"model: {out}")
    typer.echo(f"next: o2pl evaluate NEWER_LOG --policy {out} --baseline logged --rewards {low:g},{high:g}")


def _choose(
    log: Interactions, work: Checkpoints, only: str | None, confidence: float, figure: Path | None, seed: int
) -> Any:
    from o2pl.fitting.candidates import candidates_for, some
    from o2pl.fitting.choosing import fit
    from o2pl.fitting.progress import shown

    ends: Any = log.reward_range
    every = candidates_for(log, ends, seed)
    chosen = every if only is None else some(every, _names(only))
    with shown() as progress:
        found = fit(log, candidates=chosen, delta=1 - confidence, seed=seed, kept=work, told=progress.told)
    _show(found, figure)
    return found.learner


def _show(found: Fit, figure: Path | None) -> None:
    from rich.console import Console

    from o2pl.fitting.render import as_table, summary_lines

    Console(width=max(Console().width, _WIDE)).print(as_table(found))
    _say(["", *summary_lines(found)])
    if figure is not None:
        _draw(found, figure)


def _names(only: str) -> list[str]:
    return [name.strip() for name in only.split(",") if name.strip()]


def _stream(asked: Streamed, figure: Path | None) -> None:
    try:
        found = fit_streamed(asked)
    except KeyboardInterrupt:
        typer.echo(f"stopped. Finished parts are saved next to {asked.out}. Run the same command to resume.", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    _show(found, figure)
    _say_next(asked.out, *found.reward_range)


def _draw(found: Fit, path: Path) -> None:
    from o2pl.drawing import write_figure

    target = path if path.suffix else path.with_suffix(".png")
    write_figure(found.figure(), target)
    typer.echo(f"figure: {target}")


# -- safe improvement


def _improve(log: Interactions, work: Checkpoints, incumbent: str, confidence: float, seed: int) -> Any:
    from rich.console import Console

    from o2pl.evaluation.propensities import estimate_propensities
    from o2pl.fitting.progress import shown
    from o2pl.fitting.render import improvement_table
    from o2pl.learners import O2PL
    from o2pl.learners.incumbent import SafeImprovement

    ends: Any = log.reward_range
    if log.continuous:
        raise InvalidInput("incumbent: found a log of real-valued actions, expected discrete ones")
    if not log.has_propensities:
        typer.echo("warning: the log has no propensities; they are estimated from the contexts", err=True)
        log = estimate_propensities(log, seed=seed)
    if log.row_weights is not None:
        whole, log = len(log), log.thinned()
        typer.echo(
            "note: rows stand for different numbers of decisions (pdrop). Safe improvement does not weight them: it"
            f" uses {len(log):,} of {whole:,} rows, drawn so that each decision is equally likely",
            err=True,
        )
    known = None if incumbent == "logged" else _incumbent(incumbent, log)
    folds, done = SafeImprovement().folds, 0
    with shown() as progress:

        def kept(name: str, compute: Callable[[], Array]) -> Array:
            nonlocal done
            found = work(name, compute)
            done += 1
            progress.told(name, done, folds)
            return found

        learner = O2PL.from_incumbent(
            log, incumbent=known, n_actions=log.n_actions, confidence=confidence, reward_range=ends,
            random_state=seed, kept=kept,
        )  # fmt: skip
    Console().print(improvement_table(learner.improvements_, learner.improvement_))
    verdict = learner.improvement_
    if verdict.deploy:
        said = f"{verdict.said}, by at least {verdict.lower:.4f}: deploy it"
    else:
        saved = "The saved model is the incumbent" if learner is known else "The saved model acts like it"
        said = f"{verdict.said}: keep the incumbent. {saved}"
    _say(["", f"{len(log):,} rows, mean reward {log.rewards.mean():.4f}", f"verdict: {said}"])
    return learner


def _incumbent(path: str, log: Interactions) -> Any:
    """Return the saved learner that made the log."""
    import numpy as np

    from o2pl.learners import load

    if not Path(path).is_file():
        raise InvalidInput(
            f"incumbent: found no file {path!r}, expected `logged` or the saved learner that made the log"
        )
    learner = load(path)
    if not hasattr(learner, "predict_proba"):
        raise InvalidInput(f"incumbent: found a {type(learner).__name__}, expected a learner of discrete actions")
    found: Floats = learner.predict_proba(log.contexts)
    played = found[np.arange(len(log)), log.actions] if found.ndim == 2 else None
    if played is not None and np.abs(played - log.propensities).mean() > _FAR:
        typer.echo(
            f"warning: the probabilities of {path} differ from the log's propensities. Did this learner, in this"
            " state, make"
            " the log? If not, use --incumbent logged",
            err=True,
        )
    return learner


def _say(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line)
    sys.stdout.flush()
