"""Explanation methods of learners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2pl.explaining import gradients  # noqa: F401  # importing it registers the terms of networks
from o2pl.explaining.coefficients import Coefficients, coefficients
from o2pl.explaining.explanation import Explanation, explanation_of, member_name_in_explanation
from o2pl.objectives.outcome import Outcome

if TYPE_CHECKING:
    from o2pl.engine.engine import Engine


class Explainable:
    """Adds `explain` (for discrete actions) and `coefficients` to a learner."""

    if TYPE_CHECKING:

        def _begun(self) -> Engine: ...  # of the learner

    def explain(
        self, context: object, items: object = None, *, ids: object = None, exclude: object = None,
        action: object = None, against: object = None,
    ) -> Explanation:  # fmt: skip
        """Explain an action: how much each feature of the context contributes, compared with another action.

        The context (with items, ids, exclude) is given as to `act`; or pass a decision that `act` returned. action: the
        action to explain; default: that of the decision, or the most likely one. against: the action to compare with;
        default: the most likely other one. `print` the result, read `.features`, `.terms` and `.support`, or draw
        `.figure()`.
        """
        engine = self._begun()
        rows = engine.log[engine.base : engine.learned]
        return explanation_of(
            engine.decider, (context, items, ids, exclude), action, against, explained_labels(engine), rows
        )

    def coefficients(self, contexts: object = None) -> Coefficients:
        """Return the weights of linear and quadratic members per unit of the input; `to_frame()` for pandas.

        For a Gaussian policy they are those of the mean action.

        contexts: example dictionaries that restore the names of hashed features. A learner knows the names it has read
        itself; after loading from a file it does not.
        """
        engine = self._begun()
        return coefficients(engine.decider, explained_labels(engine), contexts)


def explained_labels(engine: Engine) -> list[str]:
    """Return the display names of the members."""
    found = []
    for acting, state in zip(engine.decider.members, engine.present, strict=False):
        kind = ""
        if isinstance(state.objective, Outcome):
            kind = ", competing actions" if state.objective.competing else ", independent actions"
        name = member_name_in_explanation(acting) + kind
        if name in found and isinstance(state.objective, Outcome) and not state.is_monitor:
            name += f", L2 {state.objective.l2:g}"
        found.append(name + (", last rows" if state.is_monitor else ""))
    return found
