"""Reproduction of the paper: run and report every study."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Sequence
from pathlib import Path

import o2pl
from o2pl.cluster import cores
from o2pl.simulation import runner
from o2pl.simulation.engines import UnitEngine
from o2pl.simulation.experiment import Options, Unit
from o2pl.simulation.run_progress import UnitProgress
from o2pl_reproduction.claims.study import Study
from o2pl_reproduction.registry import STUDIES
from o2pl_reproduction.reports import report
from o2pl_reproduction.reports.report import Section


def reproduce(
    out: str | os.PathLike[str],
    size: str = "quick",
    *,
    data: str | None = None,
    studies: Sequence[Study] | None = None,
    engine: UnitEngine | None = None,
    progress: UnitProgress | None = None,
    keep: bool = False,
) -> tuple[list[Section], list[tuple[Unit, str]]]:
    """Run the missing units of every study, then build the report. Returns its sections, and failures with reasons.

    `data`: a folder of classification data sets for the bake-off; None: the embedded ones. `keep`: also reuse rows that
    other sources of o2pl computed.
    """
    folder, studies = Path(out), STUDIES if studies is None else studies
    folder.mkdir(parents=True, exist_ok=True)
    failures: list[tuple[Unit, str]] = []
    for study in studies:
        chosen = Options(size, data=data)
        done = runner.run(study.experiment, chosen, out=folder, engine=engine, progress=progress, keep=keep)
        failures += done.failures
        if done.computed:
            remember(folder, study.experiment.name, size)
    return report.build(folder, studies), failures


def remember(folder: Path, name: str, size: str) -> None:
    """Store when and on what machine the rows of an experiment were made, for the report."""
    report.write_made(folder, report.read_made(folder) | {name: about(size)})


def about(size: str) -> dict[str, str]:
    """Return when and on what machine the rows were made."""
    return {
        "size": size,
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "o2pl": o2pl.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {cores()} cores, Python {platform.python_version()}",
    }
