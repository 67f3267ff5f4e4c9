"""One decision, one interaction, without the arrays of a batch.

Reductions are those of the batch, by the same compiled functions, and all else is done number by number as NumPy does
it: a decision and its propensity are the batch's to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2pl.compiled import compiled
from o2pl.features import Chain, Standardise
from o2pl.features.basic import project
from o2pl.features.standardise import standardise_row
from o2pl.interactions import Decision, Log
from o2pl.learners.kernels.replay import all_finite
from o2pl.learners.members import MemberState
from o2pl.learners.replay import is_flat
from o2pl.learners.stream import UniformStream
from o2pl.policies.actionwise import ActionWise
from o2pl.policies.gaussian import Gaussian
from o2pl.policies.sampling import draw_one, normalise
from o2pl.protocols import Floats


@compiled
def prepare(rows: Floats, shift: Floats, scale: Floats, clip: Any, room: Floats) -> bool:
    """Standardised rows, to the last d columns of `room`; False if an entry is not finite. rows [m, d]"""
    d = rows.shape[1]
    for r in range(len(rows)):
        if not all_finite(rows[r]):
            return False
        standardise_row(rows[r], shift, scale, clip, room[r, room.shape[1] - d :])
    return True


class FlatFeatures:
    """A member's features of a few rows, where they are contexts, raw or standardised, perhaps with an intercept."""

    def __init__(self, member: MemberState, width: int, dtype: Any) -> None:
        chain = member.features.maps if isinstance(member.features, Chain) else (member.features,)
        at = next((k for k, each in enumerate(chain) if isinstance(each, Standardise)), None)
        scaler = None if at is None else chain[at]
        place = f"{at}." if isinstance(member.features, Chain) else ""
        self._names = None if at is None else (f"{place}shift", f"{place}scale")
        self._as_they_are = np.zeros(width, np.float32), np.ones(width, np.float32)
        self._clip = np.float32(scaler.clip if isinstance(scaler, Standardise) else math.inf)
        self._member = member
        self._room = np.ones((1, member.features.width(width)), dtype)  # the intercept's column stays as it is

    def __call__(self, rows: Floats) -> Floats | None:
        """[m, width of the features], until the next call; None if an entry is not finite."""
        if len(rows) > len(self._room):
            self._room = np.ones((2 * len(rows), self._room.shape[1]), self._room.dtype)
        seen, names = self._member.seen, self._names
        shift, scale = self._as_they_are if names is None else (seen[names[0]], seen[names[1]])
        room = self._room[: len(rows)]
        return room if prepare(rows, shift, scale, self._clip, room) else None


class SingleSet:
    """For one member of class `ActionWise`; a context is a matrix [K, d]."""

    def __init__(self, member: MemberState, log: Log, sharpness: float, exploration: float) -> None:
        self._member, self._log = member, log
        self._sharpness, self._exploration = sharpness, exploration
        self._features = FlatFeatures(member, log.width, np.float32)
        self._offsets, self._no_offset = np.zeros(2, np.int64), np.zeros(1)

    def _usable(self, context: Any) -> bool:
        usable = isinstance(context, np.ndarray) and context.ndim == 2 and context.dtype in ROWS
        return usable and context.shape[1] == self._log.width and context.size > 0

    def decide(self, context: Any, stream: UniformStream) -> Decision | None:
        """None, and nothing drawn, where the batch's path must look at the context."""
        features = self._features(context) if self._usable(context) else None
        if features is None:
            return None
        logits = project(features, self._member.params[None], self._no_offset)[:, 0]
        self._offsets[1] = len(logits)
        pi = normalise(logits, self._offsets, self._sharpness)
        if self._exploration:
            pi = (1 - self._exploration) * pi + self._exploration / float(len(pi))
        action = draw_one(pi, stream.next())
        return Decision(action, min(float(pi[action]), 1.0))

    def record(self, context: Any, action: Any, loss: float, propensity: float) -> bool:
        """Append to the log; False, and nothing written, where the batch's path must look."""
        if type(action) is not int or not self._usable(context) or not 0 <= action < len(context):
            return False
        if not all_finite(context.reshape(-1)):
            return False
        self._log.append(context, action, loss, propensity)
        return True


class SingleRow:
    """For one member of class `Gaussian`; a context is a row [d]."""

    def __init__(self, member: MemberState, log: Log) -> None:
        from scipy.special import ndtri  # here: scipy would double the time `import o2pl` takes

        self._member, self._log, self._ndtri = member, log, ndtri
        self._features = FlatFeatures(member, log.width, np.float64)
        self._centre = np.array([member.policy.centre])

    def _usable(self, context: Any) -> bool:
        return isinstance(context, np.ndarray) and context.shape == (self._log.width,) and context.dtype in ROWS

    def decide(self, context: Any, stream: UniformStream) -> Decision | None:
        """None, and nothing drawn, where the batch's path must look at the context."""
        features = self._features(context[None]) if self._usable(context) else None
        if features is None:
            return None
        theta, scale = self._member.policy.split(self._member.params)
        mean = float(project(features, theta[None], self._centre)[0, 0])
        action = mean + scale * float(self._ndtri(min(max(stream.next(), 1e-16), 1 - 1e-16)))
        z = (action - mean) / scale
        return Decision(action, float(np.exp(-0.5 * (z * z)) / (scale * math.sqrt(2 * math.pi))))

    def record(self, context: Any, action: Any, loss: float, propensity: float) -> bool:
        """Append to the log; False, and nothing written, where the batch's path must look."""
        if not (type(action) is float and self._usable(context) and all_finite(context)):
            return False
        self._log.append(context, action, loss, propensity)
        return True


def single(members: list[MemberState], log: Log, sharpness: float, exploration: float) -> SingleSet | SingleRow | None:
    """What decides and records one at a time for these members; None where only the batch's path can."""
    (member, *others) = members
    if others or not is_flat(member):
        return None
    if type(member.policy) is ActionWise and log.action_sets:
        return SingleSet(member, log, sharpness, exploration)
    return SingleRow(member, log) if type(member.policy) is Gaussian else None


ROWS = (np.dtype(np.float32), np.dtype(np.float64))  # such arrays go to the kernels as they are
