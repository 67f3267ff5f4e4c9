"""Safe improvement of the policy that made a log: `o2pl fit --incumbent`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.propensities import estimate_propensities
from o2pl.learners import O2PL, load
from o2pl.protocols import Array, Floats

_FAR = 0.02  # largest mean difference between a saved incumbent's and the logged probabilities

Kept = Callable[[str, Callable[[], Array]], Array]  # computes what is named, or returns it from a checkpoint
Warn = Callable[[str], None]


class Improved(NamedTuple):
    """A learner that acts like the incumbent, or better, and the log that it was judged on."""

    learner: Any
    log: Interactions
    kept_incumbent: bool  # the learner is the saved incumbent itself


def improve(
    log: Interactions, incumbent: str, *, confidence: float, seed: int, kept: Kept, warn: Warn,
) -> Improved:  # fmt: skip
    """Learn a policy that replaces the incumbent only where the log supports it.

    incumbent: `logged`, or the path of the saved learner that made the log; kept: checkpoints, as of `from_incumbent`
    """
    ends: Any = log.reward_range
    if log.continuous:
        raise InvalidInput("incumbent: found a log of real-valued actions, expected discrete ones")
    if not log.has_propensities:
        warn("warning: the log has no propensities; they are estimated from the contexts")
        log = estimate_propensities(log, seed=seed)
    if log.row_weights is not None:
        whole, log = len(log), log.thinned()
        warn(
            "note: rows stand for different numbers of decisions (pdrop). Safe improvement does not weight them: it"
            f" uses {len(log):,} of {whole:,} rows, drawn so that each decision is equally likely"
        )
    known = None if incumbent == "logged" else incumbent_to_improve(incumbent, log, warn)
    learner = O2PL.from_incumbent(
        log, incumbent=known, n_actions=log.n_actions, confidence=confidence, reward_range=ends, random_state=seed,
        kept=kept,
    )  # fmt: skip
    return Improved(learner, log, learner is known)


def incumbent_to_improve(path: str, log: Interactions, warn: Warn) -> Any:
    """Return the saved learner that made the log; warn if its probabilities are others than the log's."""
    if not Path(path).is_file():
        raise InvalidInput(
            f"incumbent: found no file {path!r}, expected `logged` or the saved learner that made the log"
        )
    learner = load(path)
    if not hasattr(learner, "predict_proba"):
        raise InvalidInput(f"incumbent: found a {type(learner).__name__}, expected a learner of discrete actions")
    found: Floats = learner.predict_proba(log.contexts)
    played = found[np.arange(len(log)), log.actions] if found.ndim == 2 else None
    if played is not None and np.abs(played - log.propensities).mean() > _FAR:
        warn(
            f"warning: the probabilities of {path} differ from the log's propensities. Did this learner, in this"
            " state, make the log? If not, use --incumbent logged"
        )
    return learner
