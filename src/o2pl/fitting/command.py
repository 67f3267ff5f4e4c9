"""`o2pl fit`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from o2pl.compiled import say_if_first
from o2pl.drawing import write_figure
from o2pl.errors import InvalidInput
from o2pl.evaluation.command import reward_range
from o2pl.evaluation.propensities import estimate_propensities
from o2pl.extras import require_extra
from o2pl.fitting.candidates import candidates_for, guessed_range, some
from o2pl.fitting.checkpoints import Checkpoints, fingerprint
from o2pl.fitting.choosing import Fit, fit
from o2pl.fitting.progress import shown
from o2pl.fitting.render import as_table, improvement_table, summary_lines
from o2pl.fitting.streamed import Address, EngineName, Memory, OutOfCore, Streamed, Workers, fit_streamed, is_streamed
from o2pl.formats.command import Log, SkipBad, read_and_say
from o2pl.interactions import Interactions
from o2pl.learners import O2PL, load
from o2pl.learners.incumbent import SafeImprovement
from o2pl.protocols import Array, Floats

_INTERRUPTED = 130  # what shells expect after Ctrl-C
_WIDE = 100  # letters of the table of candidates; narrower terminals break its lines
_FAR = 0.02  # how far a saved incumbent's probabilities may be from the logged ones, on average


def fit_log(
    log: Log,
    out: Annotated[Path, typer.Option(help="Where to save the chosen learner, such as `model.o2pl`.")],
    rewards: Annotated[
        str | None,
        typer.Option(help="The lowest and highest reward there can be, such as `0,1`. [default: as the log shows]"),
    ] = None,
    incumbent: Annotated[
        str | None,
        typer.Option(
            help="Safe improvement on the policy that made the log: replace it only where the log supports that."
            " `logged`, or the saved learner that made the log."
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="With which intervals hold, all candidates together; with --incumbent, with which a new policy must"
            " be better. [default: 0.95; with --incumbent 0.9]"
        ),
    ] = None,
    candidates: Annotated[
        str | None, typer.Option(help="Only these: comma-separated beginnings of names, such as `bandit,o2pl linear`.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Where to draw the candidates, PNG or SVG.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the rows that are held out, and of the learner.")] = 0,
    skip_bad: SkipBad = 0,
    out_of_core: OutOfCore = None,
    memory: Memory = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Learn from a log: try several learners, show what each is worth on rows it has not seen, save the best.

    Candidates are `Bandit`, its members one by one, and `O2PL` with several classes, penalties and weight decays. Each
    learns from a part of the log and is judged on the rest by a doubly robust estimate with an interval. The one with
    the highest lower end is taken and learns from all rows. What is finished is kept beside OUT: after a kill, the same
    command goes on and ends with the same model, bit for bit.

    Parquet that is larger than memory is read a few rows at a time: candidates are compared on a sample of 100,000
    rows, and the best learns from all. The model is then the policy without its log: it decides and can be evaluated.
    """
    if figure is not None:
        require_extra("plots", "drawing figures")
    if not out.parent.is_dir():
        raise InvalidInput(f"out: found no folder {str(out.parent)!r}, expected one to save {out.name!r} in")
    if incumbent is not None and (candidates is not None or figure is not None):
        raise InvalidInput("incumbent: found it beside --candidates or --figure, expected it without")
    ends = None if rewards is None else reward_range(rewards)
    if is_streamed(log, out_of_core, memory, engine, workers, address):
        if incumbent is not None:
            raise InvalidInput("incumbent: found it with a fit out of core, expected --in-memory")
        names = None if candidates is None else _names(candidates)
        asked = Streamed(log, out, ends, names, confidence or 0.95, seed, skip_bad, engine, workers, address)
        _stream(asked, figure)
        return
    found = read_and_say(log, ends, skip_bad, need_propensities=False)
    if found.reward_range is None:
        found = found.changed(reward_range=guessed_range(found.rewards))
    say_if_first()
    settings = (incumbent, confidence, candidates, seed)
    work = Checkpoints(out.with_name(f"{out.name}.fitting"), fingerprint(found, settings))
    if work.other:
        typer.echo(f"{work.folder}: found parts of other work, which are removed", err=True)
    if work.before:
        typer.echo(f"going on: {work.before} parts were done before", err=True)
    try:
        if incumbent is None:
            learner = _choose(found, work, candidates, confidence or 0.95, figure, seed)
        else:
            learner = _improve(found, work, incumbent, confidence or 0.9, seed)
    except KeyboardInterrupt:
        typer.echo(f"stopped. What is finished is kept in {work.folder}; the same command goes on", err=True)
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
    ends: Any = log.reward_range
    every = candidates_for(log, ends, seed)
    chosen = every if only is None else some(every, _names(only))
    with shown() as progress:
        found = fit(log, candidates=chosen, delta=1 - confidence, seed=seed, kept=work, told=progress.told)
    _show(found, figure)
    return found.learner


def _show(found: Fit, figure: Path | None) -> None:
    from rich.console import Console

    Console(width=max(Console().width, _WIDE)).print(as_table(found))
    _say(["", *summary_lines(found)])
    if figure is not None:
        _draw(found, figure)


def _names(only: str) -> list[str]:
    return [name.strip() for name in only.split(",") if name.strip()]


def _stream(asked: Streamed, figure: Path | None) -> None:
    say_if_first()
    try:
        found = fit_streamed(asked)
    except KeyboardInterrupt:
        typer.echo(f"stopped. What is finished is kept beside {asked.out}; the same command goes on", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    _show(found, figure)
    _say_next(asked.out, *found.reward_range)


def _draw(found: Fit, path: Path) -> None:
    target = path if path.suffix else path.with_suffix(".png")
    write_figure(found.figure(), target)
    typer.echo(f"figure: {target}")


# -- safe improvement


def _improve(log: Interactions, work: Checkpoints, incumbent: str, confidence: float, seed: int) -> Any:
    from rich.console import Console

    ends: Any = log.reward_range
    if log.continuous:
        raise InvalidInput("incumbent: found a log of real-valued actions, expected discrete ones")
    if not log.has_propensities:
        typer.echo("warning: the log has no propensities; they are estimated from the contexts", err=True)
        log = estimate_propensities(log, seed=seed)
    known = None if incumbent == "logged" else _probabilities(incumbent, log)
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
        said = f"better than the incumbent by at least {verdict.lower:.4f}, with {confidence:.0%} confidence: deploy it"
    else:
        said = (
            f"no candidate is better than the incumbent with {confidence:.0%} confidence: keep the incumbent."
            " The model that is saved acts like it"
        )
    _say(["", f"{len(log):,} rows, mean reward {log.rewards.mean():.4f}", f"verdict: {said}"])
    return learner


def _probabilities(path: str, log: Interactions) -> Floats:
    """Of all actions, by the saved learner that made the log."""
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
            f"warning: {path} gives other probabilities than the log's propensities: was it this learner, as it is"
            " now, that made the log? If not, say --incumbent logged",
            err=True,
        )
    return found


def _say(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line)
    sys.stdout.flush()
