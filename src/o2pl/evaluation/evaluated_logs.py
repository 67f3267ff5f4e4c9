"""Conversion of the log argument of `evaluate`."""

from __future__ import annotations

import numpy as np

from o2pl.data.contexts import SparseRows, are_sparse_contexts, as_contexts
from o2pl.data.interactions import Interactions, interactions_in
from o2pl.data.kinds import OFFER, ROW
from o2pl.encode import Encoder, Schema
from o2pl.errors import InvalidInput
from o2pl.learners.base import BanditEstimator
from o2pl.protocols import Floats
from o2pl.validation import RewardRange, check_reward_range

_BITS = 18
_COMMON, _SHARED = 48, 16  # features of dictionaries with their own columns, and shared columns for the others


def as_evaluated_log(log: object, reward_range: RewardRange | None = None) -> Interactions:
    """Return the log from `Interactions`, a learner (its own log), a `Log`, or a tuple of four columns.

    A `reward_range` replaces that of the log; rewards outside it are an error.
    """
    found = log.log_ if isinstance(log, BanditEstimator) else interactions_in(log)
    if found is None and isinstance(log, tuple | list) and len(log) == 4:
        found = Interactions(*log)
    if found is None:
        raise InvalidInput(
            f"log: found {_said_of_evaluated_log(log)}, expected Interactions (from read_log, for example), a"
            " learner, a Log,"
            " or a tuple of four columns: contexts, actions, rewards, propensities"
        )
    if not len(found):
        raise InvalidInput("log: found no rows, expected at least one")
    if reward_range is not None and check_reward_range(reward_range) != found.reward_range:
        found = found.changed(reward_range=reward_range)
    return found


def numeric_evaluated_log(log: Interactions) -> Interactions:
    """Return the log with contexts encoded as numeric rows, for reward models and tests. Policies use raw contexts."""
    if log.form == "frame":
        schema = Schema.learn(log.contexts)
        return log.changed(contexts=schema.numbers(log.contexts), context_names=schema.names)
    rows = log.encoded
    if log.form == "records":
        hashed = None if log.kind == OFFER else (_BITS, False, ())
        encoder = Encoder(log.kind, items=log.kind != ROW, hashed=hashed)
        rows = as_contexts(encoder.encode(log.contexts))
    if are_sparse_contexts(rows.own):
        return log.changed(contexts=rows.with_features(common_features_of_evaluated_log(rows.own)))
    plain = rows.items is None or rows.shared is None
    return log if plain else log.changed(contexts=rows.with_features(rows.inputs))


def common_features_of_evaluated_log(rows: SparseRows) -> Floats:
    """Return the most common features of sparse rows as columns. All others share some columns, by index.

    [n, at most `_COMMON + _SHARED`]
    """
    counts = np.bincount(rows.indices, minlength=1)
    common = np.argsort(-counts, kind="stable")[:_COMMON]
    common = common[counts[common] > 0]
    column = len(common) + np.arange(len(counts)) % _SHARED
    column[common] = np.arange(len(common))
    width = len(common) + _SHARED * (np.count_nonzero(counts) > len(common))
    if width == 0:
        return np.zeros((len(rows), 1), np.float32)
    out = np.zeros((len(rows), width), np.float32)
    np.add.at(out, (np.repeat(np.arange(len(rows)), np.diff(rows.offsets)), column[rows.indices]), rows.values)
    return out


def _said_of_evaluated_log(log: object) -> str:
    if isinstance(log, str):
        return f"the text {log!r}"
    kind = f"a {type(log).__name__}"
    return f"{kind} of {len(log)}" if isinstance(log, tuple | list) else kind
