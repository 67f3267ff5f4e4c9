"""Distributed passes over a mapped log on a Ray cluster: parameters go out, sums and gradients come back.

The log is split into stripes of rows. Each stripe is assigned to one worker, which maps it from a shared disk. A worker
that dies is replaced; the new one maps the same stripes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from o2pl.data.log import Log
from o2pl.errors import InvalidInput
from o2pl.fitting.passes import BlockPasses, Kept, Passed, mapped_control_for_passes
from o2pl.kernels.blockwise import BlockwiseValue, Sums, added_blockwise
from o2pl.kernels.registry import MemberProblem
from o2pl.objectives.terms import Totals
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from o2pl.fitting.fit_out_of_core import MakePasses

STRIPE = 2**17  # rows
_DEATHS = 3  # limit of deaths of one worker in one pass

Say = Callable[[str], None]


def passes_on(cluster: Any, workers: int | None, say: Say) -> MakePasses:
    """Return what makes the passes of a fit on a cluster (see `connected_cluster`)."""

    def made(log: Log, folder: Path, kept: Kept, passed: Passed | None) -> BlockPasses:
        return RayPasses(log, folder, kept, passed, cluster, workers, say)

    return made


class Task(NamedTuple):
    """The data of a solve that a worker needs."""

    number: int
    problem: MemberProblem  # without rows
    totals: Totals
    rows: int  # number of rows of the log
    control: bool  # whether the folder has a control variate


class Shard:
    """A worker's part: every `of`-th stripe of the log, from stripe `place` on."""

    def __init__(self, kind: Log, folder: str, rows: int, control: str, place: int, of: int, stripe: int) -> None:
        self._kind, self._folder, self._rows, self._control = kind, folder, rows, Path(control)
        self._first, self._step, self._stripe, self._solve = place * stripe, of * stripe, stripe, -1
        self._values: list[BlockwiseValue] = []
        self._seconds = 0.0

    def sums(self, task: Task, params: Floats) -> Sums | None:
        """Return the sums over its rows; None: it has no rows."""
        if task.number != self._solve:
            self._values, self._solve = self._prepared(task), task.number
        started = time.process_time()
        found = added_blockwise([value.sums(params) for value in self._values]) if self._values else None
        self._seconds += time.process_time() - started
        return found

    def seconds(self) -> float:
        """Return the CPU time of all sums so far."""
        return self._seconds

    def _prepared(self, task: Task) -> list[BlockwiseValue]:
        log = self._kind.empty(self._folder, rows=self._rows)
        rows, made = log.shortened(task.rows).columns, []
        control = mapped_control_for_passes(self._control, rows.n_actions or 0, task.rows) if task.control else None
        for start in range(self._first, task.rows, self._step):
            own = slice(start, min(start + self._stripe, task.rows))
            some = None if control is None else control.part(own)
            made.append(BlockwiseValue(task.problem._replace(rows=rows[own]), some, task.totals))
        return made


class RayPasses(BlockPasses):
    """Passes on a Ray cluster. `cluster`: Ray and the environment of its workers, from `connected_cluster`."""

    def __init__(
        self, log: Log, folder: Path, kept: Kept, passed: Passed | None, cluster: tuple[Any, dict[str, str]],
        workers: int | None, said: Say, stripe: int = STRIPE,
    ) -> None:  # fmt: skip
        super().__init__(folder, kept, passed)
        self._ray: Any
        self._ray, variables = cluster
        there = int(self._ray.cluster_resources().get("CPU", 0))
        if (workers or 1) > there:
            raise InvalidInput(
                f"workers: found {workers}, expected at most {there}, the number of cores of the Ray cluster"
            )
        self._of, self._said, self._tasks = workers or there, said, 0
        self._given = log.empty(), str(log.folder), len(log), str(folder)
        self._remote = self._ray.remote(Shard).options(num_cpus=1, max_restarts=0, runtime_env={"env_vars": variables})
        self._stripe = stripe
        self.workers = [self._start(place) for place in range(self._of)]

    def _start(self, place: int) -> Any:
        return self._remote.remote(*self._given, place, self._of, self._stripe)

    def summed(self, value: BlockwiseValue) -> Callable[[Floats], Sums]:
        self._tasks += 1
        problem = value.problem._replace(rows=value.problem.rows[:0], shared={}, previous=None, plan=None)
        rows = len(value.problem.rows)
        task = self._ray.put(Task(self._tasks, problem, value.totals, rows, value.control is not None))

        def sums(params: Floats) -> Sums:
            given = self._ray.put(params)
            waiting = [worker.sums.remote(task, given) for worker in self.workers]
            found = [self._answer(place, one, task, given) for place, one in enumerate(waiting)]
            return added_blockwise([one for one in found if one is not None])

        return sums

    def _answer(self, place: int, reference: object, task: object, params: object) -> Sums | None:
        failures = self._ray.exceptions
        for _ in range(_DEATHS):
            try:
                answer: Sums | None = self._ray.get(reference)
                return answer
            except (failures.ActorDiedError, failures.ActorUnavailableError, failures.WorkerCrashedError):
                self._said(f"worker {place + 1} of {self._of} died: a new worker replaces it and reads its rows again")
                self.workers[place] = self._start(place)
                reference = self.workers[place].sums.remote(task, params)
            except failures.RayTaskError as error:
                raise InvalidInput(
                    f"worker {place + 1} of {self._of}: cannot read its rows ({error.cause}), expected a disk that all"
                    " workers"
                    " share. Put --out on such a disk, and run the same command again"
                ) from None
        raise InvalidInput(
            f"worker {place + 1} of {self._of}: died {_DEATHS} times in one pass, possibly out of memory. Use fewer"
            " --workers, and run the same command again: it resumes from here"
        )
