"""`fit` for logs larger than memory: candidates are compared on a sample; the best one learns from all rows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2pl.data.log import Log
from o2pl.engine.decider import Decider
from o2pl.engine.offline import learn_offline
from o2pl.errors import InvalidInput, nearest
from o2pl.extras import require_extra
from o2pl.fitting.candidate_learners import Candidate, candidates_for, named_candidate_learners, some_candidate_learners
from o2pl.fitting.choice import Fit, Told, fit
from o2pl.fitting.large_logs import FirstPass, Read, begin_with_large_log, copy_large_log, scan_large_log
from o2pl.fitting.pass_checkpoints import PassCheckpoints
from o2pl.fitting.passes import BlockPasses, Passed
from o2pl.formats.bad_rows import BadRows
from o2pl.formats.files import kind_of_file, parquet_file_size
from o2pl.validation import RewardRange

if TYPE_CHECKING:
    from o2pl.protocols import Array

ENGINES = ("local", "ray")
_COPIES = 4  # peak memory of an in-memory fit, in copies of the log in double precision
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

MakePasses = Callable[
    [Log, Path, PassCheckpoints, Passed | None], BlockPasses
]  # (mapped log, folder, checkpoints, progress)


class Streamed(NamedTuple):
    """What is asked of a fit of a log larger than memory."""

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

    @property
    def settings(self) -> Streamed:
        """The settings that the result depends on, besides the log."""
        return self._replace(log=Path(), out=Path(), address=None)


def fit_out_of_core(
    path: Path,
    work: PassCheckpoints,
    *,
    candidates: Sequence[Any] | None = None,
    only: Sequence[str] | None = None,
    reward_range: RewardRange | None = None,
    delta: float = 0.05,
    seed: int = 0,
    bad: BadRows | None = None,
    read: Read | None = None,
    told: Told | None = None,
    passed: Passed | None = None,
    make_passes: MakePasses | None = None,
) -> Fit:
    """Fit to a Parquet file or folder. `work`: checkpoints, with the folder of the copied log.

    `candidates`: as for `fit`; `only`: name prefixes of candidates. The choice and the policy are the same as those of
    `fit` on the sample; for a log no longer than the sample, on all rows. The returned `learner` is a `Decider`: it has
    no log.
    """
    bad = bad or BadRows(path.name)
    found = scan_large_log(path, reward_range, bad, seed, read)
    if not found.sample.has_propensities:
        raise InvalidInput(f"{path.name}: found no propensities, expected one per row for a log larger than memory")
    chosen_from = (
        candidates_for(found.sample, found.reward_range, seed)
        if candidates is None
        else named_candidate_learners(candidates)
    )
    chosen_from = chosen_from if only is None else some_candidate_learners(chosen_from, only)

    def learned(candidate: Candidate) -> Decider:
        return _learn_out_of_core(
            candidate.made(), found, work, BadRows(bad.file, bad.limit), read, passed, make_passes
        )

    made = fit(found.sample, candidates=chosen_from, delta=delta, seed=seed, kept=work, told=told, learned=learned)
    return replace(made, rows=found.rows, sample=len(found.sample))


def _learn_out_of_core(
    learner: Any, found: FirstPass, work: PassCheckpoints, bad: BadRows, read: Read | None, passed: Passed | None,
    make_passes: MakePasses | None,
) -> Decider:  # fmt: skip
    engine, folder = begin_with_large_log(learner, found.sample), work.folder / "log"

    def copied() -> Array:
        copy_large_log(found, learner, engine, folder, bad, read)
        return np.array([found.rows])

    work(f"the copy of the log for {learner!r}", copied)
    whole = engine.log.empty(folder, rows=found.rows)
    engine.passes = (make_passes or _passes_out_of_core)(whole, work.folder / "control", work, passed)
    learn_offline(engine, whole)
    return engine.snapshot()


def _passes_out_of_core(log: Log, folder: Path, work: PassCheckpoints, passed: Passed | None) -> BlockPasses:
    return BlockPasses(folder, work, passed)


# -- memory limits


def is_out_of_core(
    log: Path, out_of_core: bool | None, memory: str | None, engine: str, workers: int | None, address: str | None
) -> bool:
    """Return whether the log is processed out of core: it is larger than memory, or the options require it."""
    if engine not in ENGINES:
        raise InvalidInput(f"engine: found {engine!r}, {nearest(engine, ENGINES)}")
    if engine == "ray":
        require_extra("ray", "the engine 'ray'")
    elif workers is not None or address is not None:
        raise InvalidInput("workers or address: found with --engine local, expected only with --engine ray")
    limit = free_core_memory() // 2 if memory is None else core_memory_in(memory)
    streamed = engine == "ray" or (is_larger_than_core(log, limit) if out_of_core is None else out_of_core)
    if streamed and kind_of_file(log) != "parquet":
        raise InvalidInput(
            f"{log.name}: expected Parquet for --out-of-core and --engine ray, found another format. Convert it with"
            " `o2pl convert LOG log.parquet`"
        )
    return streamed


def is_larger_than_core(path: Path, memory: int) -> bool:
    """Return whether an in-memory fit would need more than `memory` bytes."""
    if kind_of_file(path) != "parquet":
        return False
    rows, columns = parquet_file_size(path)
    return _COPIES * 8 * rows * columns > memory


def free_core_memory() -> int:
    """Return the free memory in bytes; a guess if the system does not report it."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 4 * 10**9


def core_memory_in(text: str) -> int:
    """Parse an amount of memory: `4GB` -> 4,000,000,000."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    try:
        number = float(found[1]) if found else -1.0
    except ValueError:
        number = -1.0
    if found is None or number <= 0:
        raise InvalidInput(f"memory: found {text!r}, expected an amount such as 4GB or 500MB")
    unit = _UNITS[found[2].upper()]
    return int(number * (1024 ** list(_UNITS).index(found[2].upper()) if found[3] else unit))
