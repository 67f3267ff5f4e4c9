"""What learners have for people who ask why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from o2pl.learners.explaining import gradients  # noqa: F401  # importing it registers the terms of networks
from o2pl.learners.explaining.coefficients import Coefficients, coefficients
from o2pl.learners.explaining.explanation import Explanation, explain, member_name
from o2pl.objectives.outcome import Outcome

if TYPE_CHECKING:
    from o2pl.learners.engine import Engine


class Explained:
    """`explain`, of learners that choose among actions, and `coefficients`."""

    if TYPE_CHECKING:

        def _begun(self) -> Engine: ...  # the learner's own

    def explain(
        self, context: Any, items: Any = None, *, ids: Any = None, exclude: Any = None, action: Any = None,
        against: Any = None,
    ) -> Explanation:  # fmt: skip
        """Why an action: what each feature of the context adds to it, against another action.

        The context (and items, ids, exclude) as for `act`; or a decision, as `act` returned it. action: the one to
        explain; by default that of the decision, or the likeliest. against: the one to compare with; by default the
        likeliest other one. `print` it, look at `.features`, `.terms` and `.support`, draw `.figure()`.
        """
        engine = self._begun()
        rows = engine.log[engine.base : engine.learned]
        return explain(engine.decider, (context, items, ids, exclude), action, against, labels(engine), rows)

    def coefficients(self, contexts: Any = None) -> Coefficients:
        """The weights of linear and quadratic members as a table, per unit of the input; `to_frame()` for pandas.

        Of a Gaussian policy they are those of the mean action.

        contexts: some dictionaries, whose words give hashed features their names back. A learner knows the words it
        has read itself; one that was loaded from a file does not.
        """
        engine = self._begun()
        return coefficients(engine.decider, labels(engine), contexts)


def labels(engine: Engine) -> list[str]:
    """What the members are called."""
    found = []
    for acting, state in zip(engine.decider.members, engine.present, strict=False):
        kind = ""
        if isinstance(state.objective, Outcome):
            kind = ", competing actions" if state.objective.competing else ", independent actions"
        found.append(member_name(acting) + kind + (", last rows" if state.watches else ""))
    return found
