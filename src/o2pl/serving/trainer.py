"""The trainer: joins rewards, learns from outcomes in order, and publishes model versions.

    join → outcomes after the cursor → partial_fit(at_most=...) → publish, at most every modelExportFrequency

Its state is the learner and the last outcome it learned from, which is the id of the last row of its log: one file,
written atomically. A trainer without that file learns from the store again. Meanwhile, servers continue with the last
version.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from o2pl.engine.trimming import drop_rows
from o2pl.errors import InvalidInput
from o2pl.learners import load
from o2pl.serving import reads, versions
from o2pl.serving.applications import Application
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.election import Election
from o2pl.serving.forget import refit_wanted
from o2pl.serving.guard import Guard
from o2pl.serving.joining import join
from o2pl.serving.learning import AT_MOST, HISTORY, interactions, learned_part, learner_for, published
from o2pl.serving.minutes import count_minutes, recount_minutes
from o2pl.serving.retention import delete_old
from o2pl.serving.schema import outcomes
from o2pl.serving.settings import Kind, LearningMode
from o2pl.serving.store import Store

_LOGGER = logging.getLogger("o2pl.serving")
_TICK = 0.5  # seconds between two checks of the store
_LEARN = 10.0  # seconds after which new outcomes are learned from, even if models are published rarely
_CHUNK = 5000  # outcomes per read
_ROUND = 20_000  # outcomes per round: other applications, and a stop request, wait for it
_NOTICEABLE = 0.001  # fraction of new outcomes: with fewer, parameters hardly change,
_PATIENCE = 60.0  # and a version waits up to this many seconds
_WAITS = 60  # checks for decisions whose wait time is over, per wait time: each scans all waiting decisions
_KEEP = 600.0  # seconds between checkpoints
_SPARE = 1.25  # rows are dropped at this multiple of HISTORY
_PRUNE = 60.0  # seconds between deletions of expired events and unused versions
_OLD = 50_000  # events deleted at a time: learning waits for it
_RETRY, _SAID = 60.0, 500  # seconds until a failed application is tried again; length of the reason that is kept
_NEVER = -math.inf  # on the monotonic clock, whose zero is often the machine's boot


class Training:
    """Training of one application."""

    def __init__(self, store: Store, application: Application, folder: Path | None, guard: bool = False) -> None:
        self.store, self.application, self._folder = store, application, folder
        self._guard = Guard(store, application.id) if guard else None
        self.part = learned_part(application)
        self.refit = _refits(store, application.id)[0]
        self.learner = learner_for(application)
        self.cursor, self.rows = 0, 0  # last outcome learned from, and their number
        self._waits_at = self._learned_at = self._published_at = _NEVER
        self._published_rows, self._kept_at = 0, time.monotonic()
        self._newest = 0  # last outcome that the newest version has learned from
        self._published = ""  # digest of the last published model
        self._unkept = False
        self._caught_up = False  # a new learner publishes nothing before it has caught up
        self._begin()

    # -- start

    def _begin(self) -> None:
        """Start from the checkpoint, or from the newest outcomes of the store."""
        path = self._path
        if path is not None and path.exists():
            try:
                self.learner = load(path)
                self.cursor = int(self.learner.log_.ids[-1])
            except (InvalidInput, AttributeError, IndexError, OSError) as error:
                _LOGGER.warning("the trainer's checkpoint cannot be read; retraining", extra={"reason": str(error)})
                self.learner = learner_for(self.application)
        own = outcomes.c.application_id == self.application.id
        with self.store.reading() as connection:
            if not self.cursor:
                last = select(outcomes.c.id).where(own).order_by(outcomes.c.id.desc())
                self.cursor = int(connection.scalar(last.offset(HISTORY).limit(1)) or 0)
            known = select(func.count()).select_from(outcomes).where(own, outcomes.c.id <= self.cursor)
            self.rows = int(connection.scalar(known) or 0)
        newest = self.store.model_versions(self.application.id, 1)
        anew = bool(newest) and self.store.note(self._trained) not in (None, self._depends)
        self._newest = 0 if anew or not newest else int(newest[0].outcome_id)

    @property
    def _path(self) -> Path | None:
        """Path of the checkpoint. Its name depends on settings and `o2pl forget`, so that old ones are not used."""
        if self._folder is None:
            return None
        return self._folder / f"application-{self.application.id}-{self._depends}.o2pl"

    @property
    def _depends(self) -> str:
        """What the learner depends on besides the outcomes."""
        return hashlib.sha256(f"{self.part}|{self.refit}".encode()).hexdigest()[:16]

    @property
    def _trained(self) -> str:
        """Name of the note with what the newest version depends on."""
        return f"trained:{self.application.id}"

    # -- work

    def step(self, now: float, last: bool = False) -> bool:
        """Run one round. Returns whether a version was published. last: leave nothing for later."""
        application, clock = self.application, time.monotonic()
        wait = application.settings.reward_wait_time.total_seconds()
        waits = last or clock - self._waits_at >= min(max(wait / _WAITS, 1.0), _LEARN)
        join(self.store, application, now, waits)
        self._waits_at = clock if waits else self._waits_at
        every = application.settings.model_export_frequency.total_seconds()
        learning = last or clock - self._learned_at >= min(every, _LEARN)
        if learning:
            self._learned_at = clock if self.learn() < _ROUND else _NEVER
        waited = clock - self._published_at
        noticeable = self.rows - self._published_rows >= _NOTICEABLE * min(self.rows, HISTORY) or waited >= _PATIENCE
        made = (last or (waited >= every and noticeable)) and self.publish()
        if made:
            self._published_at, self._published_rows = clock, self.rows
        if learning:  # after publishing: nobody waits for these
            count_minutes(self.store, application)
            if self._guard is not None:
                self._guard.look(application)
        if self._unkept and (last or time.monotonic() - self._kept_at >= _KEEP):
            self.keep()
        return made

    def learn(self) -> int:
        """Learn from new outcomes, up to the limit of a round. Returns their number."""
        before = self.rows
        while self.rows - before < _ROUND:
            found = self.store.learned_rows(self.application.id, self.cursor, _CHUNK)
            if not found:
                self._caught_up = True
                break
            if self.application.settings.learning_mode is not LearningMode.LOGGING_ONLY:
                self._add(found)
            self.cursor, self.rows = found[-1].id, self.rows + len(found)
        self._unkept = self._unkept or self.rows > before
        return self.rows - before

    @property
    def _learner_began(self) -> bool:
        return self.learner._engine is not None

    def _add(self, found: Any) -> None:
        batch = interactions(self.application, found)
        if batch is None:
            return
        try:
            self.learner.partial_fit(batch, at_most=AT_MOST)
        except InvalidInput as error:  # for example contexts with other columns
            if len(found) > 1:
                for some in (found[: len(found) // 2], found[len(found) // 2 :]):
                    self._add(some)
                return
            where = {"application": self.application.name, "event": found[0].event_id, "reason": str(error)}
            _LOGGER.warning("an event cannot be learned from and is skipped", extra=where)
            return
        engine = self.learner._engine
        if self.application.kind is not Kind.CONTINUOUS and len(engine.log) > _SPARE * HISTORY:
            drop_rows(engine, len(engine.log) - HISTORY)

    def publish(self) -> bool:
        """Publish a new version if the parameters have changed."""
        if not (self._learner_began and self._caught_up and self.cursor > self._newest):
            return False
        body = published(self.application, self.learner)
        digest, self._newest = hashlib.sha256(body).hexdigest(), self.cursor
        if digest == self._published:
            return False
        self._published = digest
        with self.store.writing() as connection:
            version = versions.add_model(connection, self.application.id, body, self.cursor, self.rows)
            if reads.note(connection, self._trained) != self._depends:
                reads.put_note(connection, self._trained, self._depends)
        told = {"application": self.application.name, "version": version, "rows": self.rows, "bytes": len(body)}
        _LOGGER.info("published a model", extra=told)
        return True

    def keep(self) -> None:
        """Write the checkpoint and delete older ones of this application."""
        path, self._unkept, self._kept_at = self._path, False, time.monotonic()
        if path is None or not self._learner_began:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.learner.save(path)
            for other in path.parent.glob(f"application-{self.application.id}-*.o2pl"):
                if other != path:
                    other.unlink(missing_ok=True)
        except OSError as error:
            _LOGGER.warning("the trainer's checkpoint cannot be written", extra={"reason": str(error)})


def _refits(store: Store, application_id: int) -> tuple[int, list[int]]:
    """Return the number of erasures, and the minutes whose sums must be recomputed."""
    with store.reading() as connection:
        return refit_wanted(connection, application_id)


def note_failure(store: Store, application_id: int, reason: str) -> None:
    """Keep for the page why an application is not learned from; "": it is."""
    with store.writing() as connection:
        reads.put_note(connection, f"{reads.FAILED}{application_id}", reason)


class Trainer:
    """Trains all applications of a store. folder: for checkpoints; None: none are written."""

    def __init__(self, store: Store, folder: Path | None = None, guard: bool = False) -> None:
        self.store, self.folder, self._guarding = store, folder, guard
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
        return made

    def _step_of(self, application: Application, now: float, last: bool) -> int:
        """Train one application. If that fails, the others go on; it is tried again later, from its checkpoint."""
        if not last and self._again.get(application.id, _NEVER) > time.monotonic():
            return 0
        try:
            made = self._training(application).step(now, last)
        except StoreUnavailable:
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
        refit, recounted = _refits(self.store, application.id)
        if recounted:
            recount_minutes(self.store, application, recounted)
        if known is None or known.part != learned_part(application) or known.refit != refit:
            known = self.training[application.id] = Training(self.store, application, self.folder, self._guarding)
        known.application = application
        return known

    def _elected(self, election: Election) -> bool:
        """Return whether this process trains. If it lost the lock, its state is discarded: another may have trained."""
        held = False
        try:
            held = election.held()
        finally:
            if not held:
                self.training.clear()
        return held

    def run_once(self) -> int:
        """Learn from all outcomes that are stored. Returns the number of published versions."""
        election = Election(self.store)
        try:
            if not election.held():
                raise InvalidInput("train: another process is training on this database; stop it, or let it finish")
            made, before = self.step(last=True), -1
            while self.rows > before:  # until no new rows are left
                before = self.rows
                made += self.step(last=True)
            return made
        finally:
            election.give_up()

    def run(self, stop: threading.Event, said: Callable[[str], None] = _LOGGER.info) -> None:
        """Run until `stop`: train while this process holds the lock, otherwise wait for it."""
        election, waiting = Election(self.store), False
        try:
            while not stop.is_set():
                try:
                    if self._elected(election):
                        if waiting or not self.training:
                            said("this process is training")
                        waiting = False
                        self.step()
                    elif not waiting:
                        waiting = True
                        said("another process is training; this one waits to take over")
                except StoreUnavailable as error:
                    _LOGGER.warning("the store is not available; trying again", extra={"reason": str(error)})
                    stop.wait(1.0)
                stop.wait(_TICK)
            if not waiting and self.training:
                self.step(last=True)
        finally:
            election.give_up()
