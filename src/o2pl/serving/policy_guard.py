"""`--guard`: roll back a policy that is worse than the baseline, with confidence.

For the decisions of learned models, the gain over the application's own choice (over the uniform policy if no baseline
is known) has an anytime-valid upper bound (`standing`). When it falls below 0, the versions that made these decisions
are withdrawn and the last version before them is pinned. If there is none, the application's own choice is returned
(apprentice mode), or decisions are uniform (version 0 is pinned).

Decisions are judged in their own order, when their wait time is over and their rewards are known: outcomes by arrival
would bring high rewards first and low ones later, and a policy as good as the baseline would be withdrawn.

A long good past must not hide a bad present: decisions are tested in epochs of 10,000, the k-th at level
δ / ((k + 1)(k + 2)). These levels sum to δ, so a policy that is never worse is ever withdrawn with probability at most
δ.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import func, select, update

from o2pl.protocols import Floats
from o2pl.serving import applications as known_applications
from o2pl.serving import gain_intervals, row_reads, versions
from o2pl.serving.applications import Application
from o2pl.serving.minute_sums import weights_of
from o2pl.serving.reward_join import Joined
from o2pl.serving.schema import models
from o2pl.serving.settings import LearningMode
from o2pl.serving.store import Store

_EPOCH = 10_000  # outcomes
_DELTA = 0.05
_MOST = 5000  # outcomes per read
_LOGGER = logging.getLogger("o2pl.serving")


class Watched(msgspec.Struct):
    """State of the guard, stored as a note."""

    decision: int = 0  # last decision read
    epoch: int = 0
    rows: int = 0  # rows of this epoch
    first: int = 0  # lowest version in this epoch
    good: int = 0  # highest version of the previous epoch, which was not worse; 0: none
    highest: int = 0  # highest version in this epoch
    sums: str = ""  # of this epoch: `gain_intervals.tally`, as base64


class Guard:
    """Guard of one application. delta: probability of ever withdrawing a policy that is not worse."""

    def __init__(self, store: Store, application_id: int, delta: float = _DELTA) -> None:
        self._store, self._name, self._delta = store, f"guard:{application_id}", delta
        said = store.note(self._name)
        self.seen = msgspec.json.decode(said, type=Watched) if said else Watched()
        if said and '"outcome"' in said:  # of an earlier version, which counted by arrival: a new epoch
            self.seen = Watched(epoch=self.seen.epoch + 1, good=self.seen.good)

    def look(self, application: Application) -> bool:
        """Check the new outcomes. Returns whether versions were withdrawn."""
        acted, before = False, self.seen.decision
        with self._store.reading() as connection:
            said = row_reads.note(connection, f"joined:{application.id}")
        upto = msgspec.json.decode(said, type=Joined).decision if said else 0
        while True:
            with self._store.reading() as connection:
                found = row_reads.settled_rows(connection, application.id, self.seen.decision, upto, _MOST)
            if not found:
                break
            self.seen.decision = found[-1].decision_id
            rows = [row for row in found if row.model_version > 0 and row.preferred is None and not row.control]
            for start in range(0, len(rows), 500):
                acted = self._judge(application, rows[start : start + 500]) or acted
        if self.seen.decision != before:
            self._store.put_note(self._name, msgspec.json.encode(self.seen).decode())
        return acted

    def _judge(self, application: Application, rows: Sequence[Any]) -> bool:
        seen, settings = self.seen, application.settings
        if seen.rows >= _EPOCH:
            self._next_epoch(seen.highest)
        numbers = [row.model_version for row in rows]
        seen.first = min(*numbers, seen.first or numbers[0])
        seen.highest = max(*numbers, seen.highest)
        weights = weights_of(application, rows)
        new = gain_intervals.tally(
            np.array([row.reward for row in rows]), settings.reward_range, weights["uniform"], weights["baseline"]
        )
        sums = new + _unpacked(seen.sums)
        seen.sums, seen.rows = base64.b64encode(sums.astype("<f8").tobytes()).decode(), seen.rows + len(rows)
        level = self._delta / ((seen.epoch + 1) * (seen.epoch + 2))
        found = gain_intervals.intervals(sums, settings.reward_range, 2 * level)  # its upper bound uses half of it
        other = "baseline" if "gain over baseline" in found else "uniform"
        judged = gain_intervals.judged("the policy", other, found, level)
        if judged is None or judged.sign >= 0:
            return False
        self._withdraw(application, other, f"{judged}, by at least {-judged.high:.4g} over {judged.rows:,} decisions")
        return True

    def _next_epoch(self, good: int) -> None:
        seen = self.seen
        self.seen = Watched(decision=seen.decision, epoch=seen.epoch + 1, good=good)

    def _withdraw(self, application: Application, other: str, why: str) -> None:
        seen = self.seen
        with self._store.writing() as connection:
            # later versions come from the same learner
            connection.execute(
                update(models)
                .where(models.c.application_id == application.id, models.c.version >= seen.first)
                .where(models.c.withdrawn.is_(None))
                .values(withdrawn=f"guard: {why}")
            )
            before = connection.scalar(
                select(func.max(models.c.version)).where(
                    models.c.application_id == application.id, models.c.version < seen.first,
                    models.c.version <= seen.good, models.c.withdrawn.is_(None),
                )
            )  # fmt: skip
            instead = int(before or 0)
            versions.pin(connection, application.id, instead)
            if not instead and other == "baseline":
                settings = msgspec.structs.replace(application.settings, learning_mode=LearningMode.APPRENTICE)
                known_applications.put_settings(connection, application.id, settings)
            self._next_epoch(0)
            row_reads.put_note(connection, self._name, msgspec.json.encode(self.seen).decode())
        now = f"version {instead}" if instead else ("the baseline" if other == "baseline" else "uniform decisions")
        told = {"application": application.name, "reason": why, "withdrawn": seen.first, "served": now}
        _LOGGER.error("guard rolled back versions from %s on: %s", seen.first, why, extra=told)


def _unpacked(text: str) -> Floats:
    if not text:
        return gain_intervals.nothing()
    return np.frombuffer(base64.b64decode(text), "<f8").reshape(gain_intervals.nothing().shape)
