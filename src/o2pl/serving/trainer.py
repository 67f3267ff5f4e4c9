"""The trainer: trains every application of a store in isolation, in one process at a time."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from o2pl.errors import InvalidInput
from o2pl.serving import imported_learners, row_reads, training_batches
from o2pl.serving.application_learner import learned_part
from o2pl.serving.applications import Application
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.minute_sums import recount_minutes
from o2pl.serving.retention import delete_old
from o2pl.serving.store import Store
from o2pl.serving.trainer_lease import Election, LeaseLost
from o2pl.serving.training import Training, refits

_LOGGER = logging.getLogger("o2pl.serving")
_TICK = 0.5  # seconds between two checks of the store
_PRUNE = 60.0  # seconds between deletions of expired events and unused versions
_OLD = 50_000  # events deleted at a time: learning waits for it
_RETRY, _SAID = 60.0, 500  # seconds until a failed application is tried again; length of the reason that is kept
_NEVER = -math.inf  # on the monotonic clock, whose zero is often the machine's boot
_TRAINS, _WAITS = "this process is training", "another process is training; this one waits to take over"


class Stop(Protocol):
    """A stop request: `threading.Event`, or `StopRequest` where signals make it."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float, /) -> bool: ...


def note_failure(store: Store, application_id: int, reason: str) -> None:
    """Keep for the page why an application is not learned from; "": it is."""
    with store.writing() as connection:
        row_reads.put_note(connection, f"{row_reads.FAILED}{application_id}", reason)


class Trainer:
    """Trains all applications of a store. folder: for checkpoints; None: none are written."""

    def __init__(
        self, store: Store, folder: Path | None = None, guard: bool = False, hung: Callable[[], None] = lambda: None
    ) -> None:
        """hung: called in another thread if nothing has moved for a quarter of an hour."""
        self._election = Election(store, hung)
        self._unfenced, self.store, self.folder, self._guarding = store, store, folder, guard
        self.training: dict[int, Training] = {}
        self._again: dict[int, float] = {}  # when a failed application is tried again
        self._pruned = time.monotonic()

    def step(self, now: float | None = None, last: bool = False) -> int:
        """Run one round for every application. Returns the number of published versions."""
        made = 0
        for application in self.store.applications():
            made += self._step_of(application, time.time() if now is None else now, last)
        if time.monotonic() - self._pruned >= _PRUNE:
            self._pruned = time.monotonic()
            for application in self.store.applications():
                delete_old(self.store, application, time.time(), at_most=_OLD)
                with self.store.writing() as connection:
                    training_batches.delete_unusable(connection, application.id)
                    imported_learners.delete_unused(connection, application.id)
        return made

    def _step_of(self, application: Application, now: float, last: bool) -> int:
        """Train one application. If that fails, the others go on; it is tried again later, from its checkpoint."""
        if not last and self._again.get(application.id, _NEVER) > time.monotonic():
            return 0
        try:
            made = self._training(application).step(now, last)
        except (StoreUnavailable, LeaseLost):
            raise
        except Exception as error:
            _LOGGER.exception("learning failed", extra={"application": application.name, "reason": str(error)})
            self.training.pop(application.id, None)
            self._again[application.id] = time.monotonic() + _RETRY
            note_failure(self.store, application.id, f"{type(error).__name__}: {error}"[:_SAID])
            return 0
        if self._again.pop(application.id, None) is not None:
            note_failure(self.store, application.id, "")
        return made

    @property
    def rows(self) -> int:
        """Number of outcomes learned from, over all applications."""
        return sum(each.rows for each in self.training.values())

    def _training(self, application: Application) -> Training:
        """Return the training with the current settings; a new one if the learner depends on a changed setting."""
        known = self.training.get(application.id)
        refit, recounted = refits(self.store, application.id)
        if recounted:
            recount_minutes(self.store, application, recounted)
        with self.store.reading() as connection:
            noted, reset = (
                training_batches.learned(connection, application.id),
                training_batches.reset_at(connection, application.id),
            )
            base = imported_learners.current(connection, application.id)
        if known is not None and known.noted != noted:
            where = {"application": application.name}
            _LOGGER.warning("the store is not the one that was learned from; retraining", extra=where)
            known = None
        now = (learned_part(application), refit, reset, base)
        if known is None or (known.part, known.refit, known.reset, known.base) != now:
            known = Training(self.store, application, self.folder, self._guarding, self._election.progress)
            self.training[application.id] = known
        known.application = application
        return known

    def _elected(self) -> bool:
        """Return whether this process trains. With a new lease it begins anew: another may have trained meanwhile."""
        term, held = self._election.term, False
        try:
            held = self._election.held()
        finally:
            if not held or self._election.term != term:
                self.training.clear()
        return held

    @contextmanager
    def _as_candidate(self) -> Iterator[None]:
        """Write only with the lease, and give it up in the end."""
        self.store = self._unfenced.fenced(self._election.check)
        try:
            yield
        finally:
            self.store = self._unfenced
            self._election.give_up()

    def run_once(self) -> int:
        """Learn from all outcomes that are stored. Returns the number of published versions."""
        with self._as_candidate():
            if not self._elected():
                raise InvalidInput("train: another process is training on this database; stop it, or let it finish")
            made, before = self.step(last=True), -1
            while self.rows > before:  # until no new rows are left
                before = self.rows
                made += self.step(last=True)
            return made

    def run(self, stop: Stop, said: Callable[[str], None] = _LOGGER.info) -> None:
        """Run until `stop`: train while this process holds the lease, otherwise wait for it."""
        before: tuple[bool, int] | None = None
        with self._as_candidate():
            while not stop.is_set():
                try:
                    elected = self._elected()
                    if (elected, self._election.term) != before:
                        said(_TRAINS if elected else _WAITS)
                    before = elected, self._election.term
                    if elected:
                        self.step()
                except LeaseLost:
                    self.training.clear()
                except StoreUnavailable as error:
                    _LOGGER.warning("the store is not available; trying again", extra={"reason": str(error)})
                    stop.wait(1.0)
                stop.wait(_TICK)
            if self.training:
                with suppress(LeaseLost):
                    self.step(last=True)
