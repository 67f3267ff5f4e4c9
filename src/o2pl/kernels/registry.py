"""Registry of fused kernels for combinations of parts. Without a kernel, the engine composes the parts.

A fused value is found by (policy, objective, kind of rows, device). It must equal `PolicyValue` of the same parts:
`tests/test_kernel_contracts.py` tests all registered ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from o2pl.data.contexts import as_contexts
from o2pl.data.interactions import Interactions
from o2pl.features.plan import FeaturePlan, feature_plan
from o2pl.protocols import FeatureMap, Function, Policy, State


class MemberProblem(NamedTuple):
    """The data and the parts of a member's solve."""

    policy: Policy
    objective: Any  # an Objective
    features: FeatureMap
    seen: State
    rows: Interactions
    start: int  # first row, in the whole log
    log: Any  # rows prepared by the objective
    previous: Any  # function of the last solve, for values that are updated as rows arrive
    shared: dict[Any, Any]  # results shared by members that learn together; "held": bytes of cached features
    device: str = "cpu"  # or "gpu", or "xla": JAX's default device
    plan: Callable[[int], FeaturePlan | None] | None = None  # of the features for n_inputs, if it is known already

    def feature_plan(self) -> FeaturePlan | None:
        """Return the plan of the features; None for custom maps."""
        n = self.rows.encoded.n_inputs
        return feature_plan(self.features, self.seen, n) if self.plan is None else self.plan(n)

    def featurise(self, rows: slice = slice(None)) -> Any:
        return features_for_registered(self.features, self.seen, self.rows.contexts[rows])

    @property
    def width(self) -> int:
        return self.features.width(self.rows.encoded.n_inputs, self.seen)


Make = Callable[[MemberProblem], Function | None]  # returns None for unsupported problems
Key = tuple[type, type, str, str]
VALUES: dict[Key, Make] = {}
WEIGHED: set[Key] = set()  # keys of values that support row weights


def register_value(
    policy: type, objective: type, kind: str, *, weighed: bool = False, device: str = "cpu"
) -> Callable[[Make], Make]:
    """Decorator: register the fused value of a policy and an objective on one kind of rows, with or without weights.

    device: "cpu", or "card": JAX's device.
    """

    def register(make: Make) -> Make:
        VALUES[policy, objective, kind, device] = make
        if weighed:
            WEIGHED.add((policy, objective, kind, device))
        return make

    return register


def find_value(problem: MemberProblem) -> Function | None:
    key = type(problem.policy), type(problem.objective), problem.rows.encoded.kind
    return _registered(problem, (*key, "card" if problem.device != "cpu" else "cpu"))


def has_registered_gpu(policy: type, objective: type, kind: str) -> bool:
    """Return whether there is a fused value for JAX's device."""
    return (policy, objective, kind, "card") in VALUES


def _registered(problem: MemberProblem, key: Key) -> Function | None:
    make = VALUES.get(key)
    return None if make is None or (problem.log.weights is not None and key not in WEIGHED) else make(problem)


def features_for_registered(features: FeatureMap, seen: State, contexts: object) -> Any:
    """Return the features of rows, or of each action of a set."""
    rows = as_contexts(contexts)
    return rows.with_features(features.transform(seen, rows.inputs))
