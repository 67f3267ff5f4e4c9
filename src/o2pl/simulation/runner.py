"""Runs an experiment: computes missing units, stores each as it finishes, and assembles the table."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from o2pl.errors import InvalidInput
from o2pl.extras import require_extra
from o2pl.simulation.engines import Failed, Finished, Local, Outcome, UnitEngine
from o2pl.simulation.experiment import Experiment, Options, Unit
from o2pl.simulation.run_progress import Silent, UnitProgress
from o2pl.simulation.store import ResultStore, stored_table_name


@dataclass(frozen=True)
class Report:
    """The result of a run."""

    units: int  # number of selected units
    computed: int  # of these, computed in this run
    failures: tuple[tuple[Unit, str], ...]  # units with reasons
    table: Path | None  # None: no unit is finished


def run(
    experiment: Experiment,
    options: Options | None = None,
    *,
    out: str | os.PathLike[str],
    number: int | None = None,
    engine: UnitEngine | None = None,
    progress: UnitProgress | None = None,
    keep: bool = False,
) -> Report:
    """Compute the selected units (or only unit `number`) that `out` does not have yet, and write their table.

    It may be stopped at any time; the same call resumes it. Rows that other sources of o2pl computed are computed
    again, unless `keep`: then the table may hold rows of several algorithms.
    """
    options, engine, progress = options or Options(), engine or Local(), progress or Silent()
    chosen = experiment.units(options) if number is None else [experiment.unit(number, options)]
    if not chosen:
        raise InvalidInput(f"{experiment.name}: found no unit with these seeds, learners and data sets")
    for unit in chosen:
        if unit.needs is not None:
            require_extra(unit.needs, f"the learner {unit.learner['name']!r}")
    store = ResultStore(out, experiment)
    with store.locked(), progress:
        states = [store.state(unit) for unit in chosen]
        reused = {"finished", "of other sources"} if keep else {"finished"}
        missing = [unit for unit, state in zip(chosen, states, strict=True) if state not in reused]
        progress.begin(experiment.name, len(missing), len(chosen) - len(missing))
        if others := states.count("of other sources"):
            progress.say(_said_by_runner(experiment.name, others, keep))
        failures: list[tuple[Unit, str]] = []
        with contextlib.closing(engine.compute(experiment.run, missing)) as outcomes:
            for unit, computed in outcomes:
                outcome = _keep_in_runner(store, unit, computed)
                if isinstance(outcome, Failed):
                    store.keep_failure(unit, outcome.traceback)
                    failures.append((unit, outcome.reason))
                progress.ended(unit, outcome)
        failed = {unit.number for unit, _ in failures}
        finished = [unit for unit in chosen if unit.number not in failed]
        name = stored_table_name(experiment.name if number is None else chosen[0].id)
        table = store.assemble(finished, name) if finished else None
    return Report(len(chosen), len(missing), tuple(failures), table)


def _said_by_runner(name: str, others: int, keep: bool) -> str:
    units = f"{name}: found rows of {others} unit{'' if others == 1 else 's'} that other sources of o2pl computed"
    return f"{units}; they are kept" if keep else f"{units}; computing them again (`keep` keeps such rows)"


def _keep_in_runner(store: ResultStore, unit: Unit, outcome: Outcome) -> Outcome:
    if isinstance(outcome, Finished):
        try:
            store.keep(unit, outcome.columns, outcome.seconds)
        except (ValueError, TypeError) as error:  # the rows do not match the experiment's columns
            return Failed.of(error)
    return outcome
