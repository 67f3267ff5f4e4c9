"""Learners and worlds as plain JSON values, from which a unit can be run again.

A description includes every parameter, so that a changed default is a changed setting.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Collection, Mapping
from typing import Any

from o2pl.learners import O2PL, Bandit, ContinuousBandit, GaussianO2PL
from o2pl.learners.params import Parameters
from o2pl.simulation.rivals.bootstrap import BootstrapEnsemble
from o2pl.simulation.rivals.cats import CATS
from o2pl.simulation.rivals.crm import SCRM
from o2pl.simulation.rivals.greedy import EpsilonGreedy, Uniform
from o2pl.simulation.rivals.inverse_gap import InverseGap
from o2pl.simulation.rivals.linear import LinTS, LinUCB
from o2pl.simulation.rivals.trees import BoostedTrees
from o2pl.simulation.rivals.vw import VowpalWabbit
from o2pl.storage import decode_from_storage, encode_for_storage

Description = Mapping[str, Any]  # plain JSON values; "name" is used on the command line and in results
OF_THE_RUN = ("n_actions", "reward_range", "random_state")  # parameters set by the world and the seed
_CLASSES: dict[str, type[Parameters]] = {
    each.__name__: each
    for each in (
        Bandit,
        O2PL,
        ContinuousBandit,
        GaussianO2PL,
        SCRM,
        CATS,
        VowpalWabbit,
        EpsilonGreedy,
        InverseGap,
        BootstrapEnsemble,
        BoostedTrees,
        LinUCB,
        LinTS,
        Uniform,
    )
}


def described(name: str, learner: object, left_out: Collection[str] = ("random_state",)) -> Description:
    """Describe a learner with all its parameters except `left_out`, which are given when it is built.

    A learner of other people's, without `get_params`, is described by its source: if that changes, so do its settings.
    """
    if not hasattr(learner, "get_params"):
        return {"name": name, "class": _described_where(type(learner)), "source": _described_source(type(learner))}
    params = {key: encode_for_storage(value) for key, value in learner.get_params().items() if key not in left_out}
    return {"name": name, "class": type(learner).__name__, "params": params}


def built(description: Description, **of_the_run: object) -> Any:
    """Build the described learner, with the parameters of the run that it accepts."""
    kind = _CLASSES[description["class"]]
    known = {name: value for name, value in of_the_run.items() if name in inspect.signature(kind).parameters}
    return kind(**decoded(description["params"]), **known)


def _described_where(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _described_source(kind: type) -> str:
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()[:20]
    except (OSError, TypeError):  # typed at a prompt, or compiled
        return "unknown"


def decoded(params: Mapping[str, object]) -> dict[str, Any]:
    return {key: decode_from_storage(value) for key, value in params.items()}


def needed_extra(learner: object) -> str | None:
    """Return the extra that the learner needs."""
    if isinstance(learner, VowpalWabbit | CATS):
        return "vw"
    return "experiments" if isinstance(learner, BoostedTrees) else None
