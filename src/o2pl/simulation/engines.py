"""Engines that compute units: `Local` (a pool of processes on this machine), `Ray` (a cluster) or `InProcess`.

An engine gets a function and units, and yields each unit with its outcome as soon as it is finished. A unit's rows
depend only on its settings: every worker uses one thread, since sums split over threads round differently, and nothing
is passed from one unit to the next.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from o2pl.cluster import ONE_THREAD, cluster_environment, connected_cluster, cores
from o2pl.extras import require_extra
from o2pl.simulation.experiment import Columns, Unit

Compute = Callable[[Unit], Columns]


@dataclass(frozen=True)
class Finished:
    columns: Columns
    seconds: float


@dataclass(frozen=True)
class Failed:
    reason: str  # one line
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        reason = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
        return cls(reason, "".join(traceback.format_exception(error)))


Outcome = Finished | Failed
UnitOutcomes = Generator[tuple[Unit, Outcome], None, None]


class UnitEngine(Protocol):
    def compute(self, run: Compute, units: Sequence[Unit]) -> UnitOutcomes:
        """Yield finished units. Closing the generator stops running units."""


def attempt_in_engines(run: Compute, unit: Unit) -> Outcome:
    """Compute a unit in a worker; exceptions become failures."""
    started = time.perf_counter()
    try:
        columns = dict(run(unit))
    except Exception as error:  # any error fails this unit only
        return Failed.of(error)
    return Finished(columns, time.perf_counter() - started)


@dataclass(frozen=True)
class Local:
    """Processes on this machine, by default one per core."""

    workers: int | None = None

    def compute(self, run: Compute, units: Sequence[Unit]) -> UnitOutcomes:
        waiting = deque(units)
        limit = min(cores() if self.workers is None else self.workers, len(units))
        idle: list[_Worker] = []
        busy: dict[Connection, _Worker] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < limit:
                    worker = idle.pop() if idle else _Worker(run)
                    busy[worker.connection] = worker
                    worker.give(waiting.popleft())
                for connection in wait(list(busy)):
                    worker = busy[connection]  # type: ignore[index]  # `wait` is given connections only
                    unit, outcome = worker.answer()
                    if outcome is None:
                        continue  # the worker has only reported that it is ready
                    del busy[worker.connection]
                    if worker.alive:
                        idle.append(worker)
                    yield unit, outcome
        finally:
            for worker in itertools.chain(idle, busy.values()):
                worker.stop()


@dataclass(frozen=True)
class InProcess:
    """This process, one unit after another: nothing needs to be sent to workers, and nothing is parallel."""

    def compute(self, run: Compute, units: Sequence[Unit]) -> UnitOutcomes:
        for unit in units:
            with threadpool_limits(1):
                outcome = attempt_in_engines(run, unit)
            yield unit, outcome


class _Worker:
    """A worker process, its current unit, and the pipe to it."""

    def __init__(self, run: Compute) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve_unit_engines, args=(theirs, run), daemon=True)
        with cluster_environment(ONE_THREAD), _engine_interrupts_held():  # both are inherited by the process
            self.process.start()
        theirs.close()  # so that the pipe closes when the process ends
        self.ready = False
        self.alive = True
        self.unit: Unit

    def give(self, unit: Unit) -> None:
        self.unit = unit
        with contextlib.suppress(BrokenPipeError):  # the process died: `answer` reports it
            self.connection.send(unit)

    def answer(self) -> tuple[Unit, Outcome | None]:
        try:
            outcome: Outcome | None = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join(5)  # the exit status is available shortly after the pipe closes
            self.stop()
            self.alive = False
            if not self.ready:
                raise RuntimeError(
                    "a worker process could not start (its error is above). In a script of your own, start runs under "
                    "`if __name__ == '__main__':`, since each worker imports that script"
                ) from None
            reason = f"its process died ({_engine_cause(self.process.exitcode)})"
            return self.unit, Failed(reason, reason)
        self.ready = True
        return self.unit, outcome

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


def _serve_unit_engines(connection: Connection, run: Compute) -> None:
    """Main loop of a worker process. It ends when the pipe closes or its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a library may have reset the signal mask
    threading.Thread(target=_end_engine_with_parent, daemon=True).start()
    connection.send(None)
    with contextlib.suppress(EOFError):
        while True:
            outcome = attempt_in_engines(run, connection.recv())
            try:
                connection.send(outcome)
            except (EOFError, OSError):
                return  # the parent is gone
            except Exception as error:  # rows that cannot be sent
                connection.send(Failed.of(error))


def _end_engine_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _engine_cause(exitcode: int | None) -> str:
    if exitcode is None or exitcode >= 0:
        return f"exit status {exitcode}"
    name = signal.Signals(-exitcode).name
    return f"{name}, perhaps out of memory" if name == "SIGKILL" else name


@contextlib.contextmanager
def _engine_interrupts_held() -> Iterator[None]:
    """Start processes that ignore Ctrl-C: the terminal sends it to all, but only the parent must handle it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it inside would enable Ctrl-C again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class Ray:
    """A Ray cluster at `address` with o2pl installed; without an address, a local one for this run."""

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        require_extra("ray", "the engine 'ray'")

    def compute(self, run: Compute, units: Sequence[Unit]) -> UnitOutcomes:
        with connected_cluster(self.address, self.workers) as (ray, variables):
            remote = ray.remote(attempt_in_engines).options(
                num_cpus=1, max_retries=0, runtime_env={"env_vars": variables}
            )
            waiting = deque(units)
            limit = 1000 if self.workers is None else self.workers  # submitted tasks; Ray runs one per core
            running: dict[Any, Unit] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < limit:
                        unit = waiting.popleft()
                        running[remote.remote(run, unit)] = unit
                    done, _ = ray.wait(list(running), num_returns=1)
                    for reference in done:
                        unit = running.pop(reference)
                        try:
                            outcome = ray.get(reference)
                        except ray.exceptions.RayError as error:  # the worker died, or its machine did
                            outcome = Failed(str(error).strip().splitlines()[-1], str(error))
                        yield unit, outcome
            finally:
                for reference in running:
                    ray.cancel(reference, force=True)
