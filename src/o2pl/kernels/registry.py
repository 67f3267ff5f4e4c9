"""Which combinations of parts have a faster version. The engine asks here; where there is none, parts are composed.

A fused value is found by (policy, objective, kind of rows, device). It must equal `PolicyValue` of the same parts:
`tests/test_kernel_contracts.py` runs every one that is registered against it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from o2pl.interactions import Interactions
from o2pl.protocols import FeatureMap, Function, Policy, State
from o2pl.rows import ActionSets, SparseRows


class Problem(NamedTuple):
    """What a member learns from, and with which parts."""

    policy: Policy
    objective: Any  # an Objective
    features: FeatureMap
    seen: State
    rows: Interactions
    start: int  # of the rows, in the whole log
    log: Any  # the rows as the objective prepared them
    previous: Any  # the function of the last solve, for values that are kept up to date as rows arrive
    shared: dict[Any, Any]  # what members that learn at the same time have in common; "held": bytes of features kept
    device: str = "cpu"  # or "gpu", or "xla": JAX's own

    def featurise(self, rows: slice = slice(None)) -> Any:
        return featurise(self.features, self.seen, self.rows.contexts[rows])

    @property
    def width(self) -> int:
        return self.features.width(n_inputs(self.rows.contexts), self.seen)


Make = Callable[[Problem], Function | None]  # None: not for this one
Key = tuple[type, type, str, str]
VALUES: dict[Key, Make] = {}
WEIGHED: set[Key] = set()  # of values that know weights of rows


def fused_value(
    policy: type, objective: type, kind: str, *, weighed: bool = False, device: str = "cpu"
) -> Callable[[Make], Make]:
    """Decorator: this makes the value of a policy and an objective on rows of a kind, which may have weights or not.

    device: "cpu", or "card": where JAX computes.
    """

    def register(make: Make) -> Make:
        VALUES[policy, objective, kind, device] = make
        if weighed:
            WEIGHED.add((policy, objective, kind, device))
        return make

    return register


def find_value(problem: Problem) -> Function | None:
    key = type(problem.policy), type(problem.objective), kind_of(problem.rows.contexts)
    return _found(problem, (*key, "card" if problem.device != "cpu" else "cpu"))


def has_card(policy: type, objective: type, kind: str) -> bool:
    """Whether there is a fused value where JAX computes."""
    return (policy, objective, kind, "card") in VALUES


def _found(problem: Problem, key: Key) -> Function | None:
    make = VALUES.get(key)
    return None if make is None or (problem.log.weights is not None and key not in WEIGHED) else make(problem)


def kind_of(contexts: Any) -> str:
    """Of rows: "dense", "sparse", "sets" or "sparse sets"."""
    if isinstance(contexts, ActionSets):
        return "sparse sets" if isinstance(contexts.values, SparseRows) else "sets"
    return "sparse" if isinstance(contexts, SparseRows) else "dense"


def n_inputs(contexts: Any) -> int:
    """Numbers of a row."""
    rows = contexts.values if isinstance(contexts, ActionSets) else contexts
    if isinstance(contexts, ActionSets) and contexts.shared is not None:
        return int(1 + contexts.shared.shape[1] + rows.shape[1])  # as `ActionSets.inputs` has them
    return int(rows.width if isinstance(rows, SparseRows) else rows.shape[1])


def featurise(features: FeatureMap, seen: State, contexts: Any) -> Any:
    """Features of rows, or of each action of a set."""
    if isinstance(contexts, ActionSets):
        return contexts.with_values(features.transform(seen, contexts.inputs))
    return features.transform(seen, contexts)
