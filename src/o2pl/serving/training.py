"""Training of one application: joins rewards, learns from outcomes in order, and publishes model versions.

    join → outcomes after the cursor → partial_fit(at_most=...) → publish, at most every modelExportFrequency

Its state is the learner and the last outcome it learned from: one file, written atomically. A trainer without that file
learns from the store again, in the same batches (`cuts`), and comes to the same policy. Meanwhile, servers continue
with the last version.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import func, select

from o2pl.engine.trimming import trim_rows
from o2pl.errors import InvalidInput
from o2pl.learners import load
from o2pl.serving import imported_learners, row_reads, training_batches, versions
from o2pl.serving.application_learner import (
    AT_MOST,
    HISTORY,
    interactions,
    learned_part,
    learner_for,
    published,
    takes_whole_sets,
)
from o2pl.serving.applications import Application
from o2pl.serving.control_comparison import compare
from o2pl.serving.erasure import refit_wanted
from o2pl.serving.minute_sums import count_minutes
from o2pl.serving.policy_guard import Guard
from o2pl.serving.reward_join import join
from o2pl.serving.schema import outcomes
from o2pl.serving.settings import Kind, LearningMode, stored, to_json
from o2pl.serving.store import Store
from o2pl.serving.training_batches import Course, Cut, LearnedUpTo

_LOGGER = logging.getLogger("o2pl.serving")
_LEARN = 10.0  # seconds after which new outcomes are learned from, even if models are published rarely
_CHUNK = 5000  # outcomes per read
_ROUND = 20_000  # outcomes per round: other applications, and a stop request, wait for it
_NOTICEABLE = 0.001  # fraction of new outcomes: with fewer, parameters hardly change,
_PATIENCE = 60.0  # and a version waits up to this many seconds
_WAITS = 60  # checks for decisions whose wait time is over, per wait time: each scans all waiting decisions
_KEEP = 600.0  # seconds between checkpoints
_SPARE = 1.25  # rows are dropped at this multiple of HISTORY
_NEVER = -math.inf  # on the monotonic clock, whose zero is often the machine's boot


class StoreChanged(Exception):
    """Raised if outcomes that were learned from are in the store no longer, or others have taken their place."""


class Training:
    """Training of one application."""

    def __init__(
        self, store: Store, application: Application, folder: Path | None, guard: bool = False,
        alive: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """alive: called between batches."""
        self.store, self.application, self._folder, self._alive = store, application, folder, alive
        self._guard = Guard(store, application.id) if guard else None
        self.part = learned_part(application)
        self.refit = refits(store, application.id)[0]
        self._waits_at = self._learned_at = self._published_at = _NEVER
        self._published_rows, self._kept_at = 0, time.monotonic()
        self._published = ""  # digest of the last published model
        self._unkept = False
        with store.reading() as connection:
            self.reset = training_batches.reset_at(connection, application.id)
            self.base = imported_learners.current(connection, application.id)
            self.noted = training_batches.learned(
                connection, application.id
            )  # what the store says how far the learner is
        self._begin()

    # -- start

    def _begin(self) -> None:
        """Start from the checkpoint, or with the batches of the store, or from its newest outcomes."""
        noted, number = self.noted, self.application.id
        with self.store.reading() as connection:
            found = (
                training_batches.course_of(connection, noted.training)
                if noted and noted.depends == self.depends
                else None
            )
            whole = found is not None and training_batches.is_whole(connection, number, found)
        if found is None or noted is None or not self._from_checkpoint(found, noted.state):
            short = found is not None and sum(cut.rows for cut in found.planned) <= _SPARE * HISTORY
            self._start(found if whole and short else None)
        self.rows = self._counted()
        newest = self.store.model_versions(number, 1)
        anew = bool(newest) and self.store.note(self._trained) not in (None, self.depends)
        self._newest = 0 if anew or not newest else int(newest[0].outcome_id)  # that the newest version has learned

    def _counted(self) -> int:
        """Return the number of outcomes up to the cursor."""
        known = select(func.count()).select_from(outcomes)
        known = known.where(outcomes.c.application_id == self.application.id, outcomes.c.id <= self.cursor)
        with self.store.reading() as connection:
            return int(connection.scalar(known) or 0)

    def _start(self, course: Course | None) -> None:
        """Begin with a new learner, or the imported one. course: the batches to learn in first; None: the newest."""
        base = self.base.id if self.base is not None else None
        self.learner, self.state = began_with(self.store, self.application, base), uuid.uuid4().hex[:16]
        self._caught_up = False  # it publishes nothing before it has caught up
        if course is None:
            own = select(outcomes.c.id).where(outcomes.c.application_id == self.application.id)
            with self.store.reading() as connection:
                last = own.order_by(outcomes.c.id.desc()).offset(HISTORY).limit(1)
                course = Course(max(int(connection.scalar(last) or 0), self.reset), import_id=base)
        self.course, self.cursor = course, course.start  # the last outcome learned from

    def _from_checkpoint(self, course: Course, state: str) -> bool:
        """Continue from the checkpoint, unless it has learned what the store does not have."""
        self.state, self.course = state, course
        known = [] if self._folder is None else list(self._folder.glob(f"{self._named}-*.o2pl"))
        if not known:
            return False
        try:
            last, path = max((int(path.stem.rpartition("-")[2]), path) for path in known)
            learner = load(path)
        except (InvalidInput, ValueError, OSError) as error:
            _LOGGER.warning("the trainer's checkpoint cannot be read; retraining", extra={"reason": str(error)})
            return False
        done = next((place for place, cut in enumerate(course.planned) if cut.outcome >= last), None)
        if done is None:
            where = {"application": self.application.name, "checkpoint": last}
            _LOGGER.warning("the trainer's checkpoint is ahead of the store; retraining", extra=where)
            return False
        self.learner, self.cursor, self._caught_up = learner, course.planned[done].outcome, False
        del course.planned[: done + 1]
        return True

    @property
    def _named(self) -> str:
        """Start of the checkpoint's name. The store has it, so that one of another past of the store is not used."""
        return f"application-{self.application.id}-{self.state}"

    @property
    def depends(self) -> str:
        """What the learner depends on besides the outcomes. `o2pl forget` changes it."""
        base = "" if self.base is None else f"|{self.base.id}"
        return hashlib.sha256(f"{self.part}|{self.refit}|{self.reset}{base}".encode()).hexdigest()[:16]

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
            compare(self.store, application, now, self._alive)
        if self._unkept and (last or time.monotonic() - self._kept_at >= _KEEP):
            self.keep()
        return made

    def learn(self) -> int:
        """Learn from new outcomes, up to the limit of a round. Returns their number."""
        before = self.rows
        while self.rows - before < _ROUND:
            self._alive()
            try:
                found, learned = self._next()
            except StoreChanged:
                _LOGGER.warning("outcomes are gone; retraining", extra={"application": self.application.name})
                self._start(None)
                self.rows = before = self._counted()
                continue
            if not found:
                self._caught_up = True
                break
            if learned:
                absorb(self.application, self.learner, found)
            self.cursor, self.rows = found[-1].id, self.rows + len(found)
        if self.course.fresh:
            self._record()
        self._unkept = self._unkept or self.rows > before
        return self.rows - before

    def _next(self) -> tuple[Any, bool]:
        """Return the next batch, and whether it is learned from."""
        if self.course.planned:
            cut = self.course.planned[0]
            found = batch(self.store, self.application.id, self.cursor, cut)
            del self.course.planned[0]
            return found, cut.learned
        found = self.store.learned_rows(self.application.id, self.cursor, _CHUNK)
        learned = self.application.settings.learning_mode is not LearningMode.LOGGING_ONLY
        if found:
            self.course.fresh.append(Cut(found[-1].id, len(found), learned))
        return found, learned

    def _record(self) -> None:
        """Write how far the learner is, and in which batches it came there."""
        now, number = time.time(), self.application.id
        noted = LearnedUpTo(self.course.name, self.state, self.depends, self.cursor, now)
        with self.store.writing() as connection:
            self.course.record(connection, number, to_json(self.application.settings), now)
            training_batches.put_learned(connection, number, noted)
        self.course.was_recorded()
        self.noted = noted

    @property
    def _learner_began(self) -> bool:
        return self.learner._engine is not None

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
            training_batches.published_at(connection, self.course, self.cursor, version)
            if row_reads.note(connection, self._trained) != self.depends:
                row_reads.put_note(connection, self._trained, self.depends)
        told = {"application": self.application.name, "version": version, "rows": self.rows, "bytes": len(body)}
        _LOGGER.info("published a model", extra=told)
        return True

    def keep(self) -> None:
        """Write the checkpoint and delete older ones of this application."""
        folder, self._unkept, self._kept_at = self._folder, False, time.monotonic()
        if folder is None or not self._learner_began:
            return
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds contexts
            path = folder / f"{self._named}-{self.cursor}.o2pl"
            self.learner.save(path)
            for other in folder.glob(f"application-{self.application.id}-*.o2pl"):
                if other != path:
                    other.unlink(missing_ok=True)
        except OSError as error:
            _LOGGER.warning("the trainer's checkpoint cannot be written", extra={"reason": str(error)})


def began_with(store: Store, application: Application, import_id: int | None) -> Any:
    """Return the learner with which a training begins: a new one, or an imported one."""
    if import_id is None:
        return learner_for(application)
    with store.reading() as connection:
        body = imported_learners.body_of(connection, import_id)
    if body is None:
        raise InvalidInput("model: the imported learner that it began with was deleted, expected it in the store")
    learner = imported_learners.learner_of(body)
    imported_learners.check_rewards(application, learner)
    return learner


def absorb(application: Application, learner: Any, found: Any) -> None:
    """Learn from a batch. Rows that cannot be learned from are logged and skipped."""
    rows = interactions(application, found, takes_whole_sets(application, learner))
    if rows is None:
        return
    try:
        learner.partial_fit(rows, at_most=AT_MOST)
    except InvalidInput as error:  # for example contexts with other columns
        if len(found) > 1:
            for some in (found[: len(found) // 2], found[len(found) // 2 :]):
                absorb(application, learner, some)
            return
        where = {"application": application.name, "event": found[0].event_id, "reason": str(error)}
        _LOGGER.warning("an event cannot be learned from and is skipped", extra=where)
        return
    engine = learner._engine
    if application.kind is not Kind.CONTINUOUS and len(engine.log) > _SPARE * HISTORY:
        trim_rows(engine, len(engine.log) - HISTORY)


def batch(store: Store, application_id: int, after: int, cut: Cut) -> Any:
    """Return the rows of a batch, as they were learned from."""
    found = store.learned_rows(application_id, after, cut.rows)
    if len(found) != cut.rows or found[-1].id != cut.outcome:
        raise StoreChanged
    return found


def rebuilt(store: Store, application: Application, version: int) -> tuple[bytes, int]:
    """Learn a version again from the store, as it was learned. Returns the model, and the number of rows."""
    stored_body = store.model_body(application.id, version)
    with store.reading() as connection:
        found = training_batches.of_version(connection, application.id, version)
    if found is None:
        raise InvalidInput(f"model: version {version} was not learned by this trainer, expected one that was")
    row, course = found
    of_then = replace(application, settings=stored(row.settings))
    learner, cursor, rows = began_with(store, of_then, course.import_id), course.start, 0
    for cut in course.planned:
        try:
            learned = batch(store, application.id, cursor, cut)
        except StoreChanged:
            raise InvalidInput(
                f"model: version {version} cannot be learned again, since some of its events were deleted; expected a"
                " version whose events are all stored"
            ) from None
        if cut.learned:
            absorb(of_then, learner, learned)
        cursor, rows = cut.outcome, rows + cut.rows
    bodies = []
    for exploration in (of_then.settings.exploration_percentage, None, 0.0):  # which may have changed meanwhile
        settings = msgspec.structs.replace(of_then.settings, exploration_percentage=exploration)
        bodies.append(published(replace(of_then, settings=settings), learner))
    return next((body for body in bodies if body == stored_body), bodies[0]), rows


def refits(store: Store, application_id: int) -> tuple[int, list[int]]:
    """Return the number of erasures, and the minutes whose sums must be recomputed."""
    with store.reading() as connection:
        return refit_wanted(connection, application_id)
