"""In which batches a learner learned: with them, what was learned can be learned again from the store, bit for bit.

    training   one learner of an application: its settings, and the outcome after which it began
    cut        the last outcome of a batch

A note, `LearnedUpTo`, says how far the learner is. It is written together with the cuts. A trainer whose memory or
checkpoint is ahead of the note, or that finds the note of another training, has learned from another store: a backup
was restored, or another trainer has learned meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, and_, delete, exists, func, insert, select, update

from o2pl.serving import row_reads
from o2pl.serving.schema import cuts, outcomes, trainings


class Cut(NamedTuple):
    """A batch: its last outcome, its number of rows, and whether they were learned from."""

    outcome: int
    rows: int
    learned: bool


class LearnedUpTo(msgspec.Struct, frozen=True):
    """How far a learner is: note of an application."""

    training: str
    state: str  # names the checkpoint
    depends: str  # what the learner depends on besides its rows
    outcome: int  # the last one
    at: float


def learned(connection: Connection, application_id: int) -> LearnedUpTo | None:
    """Return how far the learner of an application is; None: it has learned nothing yet."""
    said = row_reads.note(connection, _note(application_id))
    return msgspec.json.decode(said, type=LearnedUpTo) if said else None


def put_learned(connection: Connection, application_id: int, value: LearnedUpTo) -> None:
    row_reads.put_note(connection, _note(application_id), msgspec.json.encode(value).decode())


def reset(connection: Connection, application_id: int) -> int:
    """Let learning begin anew after the newest outcome. Returns its id; 0: there is none."""
    newest = select(func.max(outcomes.c.id)).where(outcomes.c.application_id == application_id)
    found = int(connection.scalar(newest) or 0)
    row_reads.put_note(connection, f"reset:{application_id}", str(found))
    return found


def reset_at(connection: Connection, application_id: int) -> int:
    """Return the outcome after which learning was begun anew; 0: it was not."""
    return int(row_reads.note(connection, f"reset:{application_id}") or 0)


def _note(application_id: int) -> str:
    return f"learned:{application_id}"


class Course:
    """The training of one application: where it began, and its cuts. `planned` are those to be followed."""

    def __init__(
        self, start: int, name: str = "", planned: Sequence[Cut] = (), import_id: int | None = None
    ) -> None:  # fmt: skip
        """start: the outcome after which it began; import_id: the learner that it began with; None: a new one."""
        self.start, self.name, self.planned = start, name or uuid.uuid4().hex, list(planned)
        self.import_id = import_id
        self.recorded = bool(name)
        self.fresh: list[Cut] = []  # not recorded yet

    def record(self, connection: Connection, application_id: int, settings: str, at: float) -> None:
        """Write the fresh cuts."""
        if not self.recorded:
            row = {"id": self.name, "application_id": application_id, "began_at": at, "start": self.start}
            connection.execute(insert(trainings).values(settings=settings, import_id=self.import_id, **row))
        if self.fresh:
            rows = [{"training_id": self.name, "outcome_id": c.outcome, "rows": c.rows, "learned": c.learned}
                    for c in self.fresh]  # fmt: skip
            connection.execute(insert(cuts), rows)

    def was_recorded(self) -> None:
        self.recorded, self.fresh = True, []


def course_of(connection: Connection, name: str) -> Course | None:
    """Return a training with all its cuts; None: unknown."""
    row = connection.execute(select(trainings).where(trainings.c.id == name)).one_or_none()
    if row is None:
        return None
    query = select(cuts.c.outcome_id, cuts.c.rows, cuts.c.learned).where(cuts.c.training_id == name)
    found = connection.execute(query.order_by(cuts.c.outcome_id)).all()
    return Course(int(row.start), name, [Cut(*each) for each in found], row.import_id)


def is_whole(connection: Connection, application_id: int, course: Course) -> bool:
    """Return whether the store still has all outcomes of the planned cuts, and no others."""
    if not course.planned:
        return True
    own = (outcomes.c.application_id == application_id, outcomes.c.id > course.start)
    query = select(func.count()).select_from(outcomes).where(*own, outcomes.c.id <= course.planned[-1].outcome)
    return int(connection.scalar(query) or 0) == sum(cut.rows for cut in course.planned)


def published_at(connection: Connection, course: Course, outcome: int, version: int) -> None:
    """Note the version that was published after a cut."""
    here = and_(cuts.c.training_id == course.name, cuts.c.outcome_id == outcome)
    connection.execute(update(cuts).where(here).values(version=version))


def of_version(connection: Connection, application_id: int, version: int) -> tuple[Any, Course] | None:
    """Return the training of a version, with its cuts up to that version; None: unknown."""
    query = (
        select(trainings, cuts.c.outcome_id.label("outcome_id"))
        .join(cuts, cuts.c.training_id == trainings.c.id)
        .where(trainings.c.application_id == application_id, cuts.c.version == version)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    course = course_of(connection, row.id)
    assert course is not None
    course.planned = [cut for cut in course.planned if cut.outcome <= row.outcome_id]
    return row, course


def delete_unusable(connection: Connection, application_id: int) -> int:
    """Delete the cuts of finished trainings whose outcomes are gone. Returns their number."""
    now = learned(connection, application_id)
    own = trainings.c.application_id == application_id
    gone = select(trainings.c.id).where(
        own, trainings.c.id != ("" if now is None else now.training),
        ~exists().where(cuts.c.training_id == trainings.c.id, outcomes.c.id == cuts.c.outcome_id),
    )  # fmt: skip
    names = list(connection.scalars(gone))
    deleted = connection.execute(delete(cuts).where(cuts.c.training_id.in_(names))).rowcount if names else 0
    if names:
        connection.execute(delete(trainings).where(trainings.c.id.in_(names)))
    return int(deleted)
