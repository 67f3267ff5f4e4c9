"""A learner for scikit-learn: `Pipeline`, `clone`, `cross_val_score` and `GridSearchCV`, with an off-policy score.

    from o2pl.adapters.sklearn import LoggedPolicy, feedback
    search = GridSearchCV(LoggedPolicy(o2pl.O2PL(3)), {"learner__penalty": [0.1, 1.0]})
    search.fit(X, feedback(actions, rewards, propensities))

scikit-learn's y has three columns here: actions, rewards and propensities.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from o2pl.data.action_names import are_action_names
from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.evaluation.estimators import estimate
from o2pl.evaluation.evaluated_logs import numeric_evaluated_log
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.values import columns_for_values
from o2pl.extras import extra
from o2pl.learners import Bandit
from o2pl.learners.targets import as_target
from o2pl.protocols import Array, Floats
from o2pl.validation import check_column, check_number

with extra("experiments", "learners in scikit-learn"):
    from sklearn.base import BaseEstimator

_ESTIMATORS = ("ips", "snips", "clipped", "dr", "sndr", "switch-dr", "dr-shrinkage")


def feedback(actions: object, rewards: object, propensities: object) -> Floats:
    """Return y for scikit-learn: one row per decision, [n, 3]. Actions may be names: y is then an array of objects."""
    named = are_action_names(actions)
    known = (check_column("reward", rewards, np.float64), check_column("propensity", propensities, np.float64))
    columns = [np.asarray(actions, object) if named else check_column("action", actions, np.float64), *known]
    if any(column.ndim != 1 or len(column) != len(columns[0]) for column in columns):
        shapes = ", ".join(str(column.shape) for column in columns)
        raise InvalidInput(f"feedback: found shapes {shapes}, expected three columns of equal length")
    return np.column_stack(columns)


class LoggedPolicy(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A policy learned from logged decisions.

    Parameters
    ----------
    learner
        The learner: `Bandit()`, `O2PL(...)`, `GaussianO2PL(...)`. Its settings are `learner__penalty` etc. None:
        `Bandit()`.
    estimator
        Estimator of the score: "ips", "snips", "clipped", "dr", "sndr", "switch-dr" or "dr-shrinkage".
    pessimism
        The score is the estimate minus this many standard errors.

    Attributes
    ----------
    learner_
        The fitted learner.
    """

    def __init__(self, learner: Any = None, estimator: str = "snips", pessimism: float = 0.0) -> None:
        self.learner, self.estimator, self.pessimism = learner, estimator, pessimism

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the learner. y: from `feedback`."""
        self._check()
        made = Bandit() if self.learner is None else type(self.learner)(**self.learner.get_params())
        actions, rewards, propensities = _sklearn_columns(y, made)
        self.learner_ = made.fit(X, actions, rewards, propensities)
        return self

    def predict(self, X: object) -> Array:
        """Return the most likely action of each context, [n]; the mean action for real-valued actions."""
        return np.asarray(self.learner_.predict(X))

    def predict_proba(self, X: object) -> Floats:
        """Return the probabilities of all actions, [n, K]."""
        return np.asarray(self.learner_.predict_proba(X))

    def score(self, X: object, y: object) -> float:
        """Return the estimated mean reward of the policy on logged decisions, minus `pessimism` standard errors."""
        self._check()
        learner = self.learner_
        given = Interactions(
            X,
            *_sklearn_columns(y, learner),
            reward_range=learner.log_.reward_range,
            n_actions=getattr(learner, "n_actions_", None),
        )
        rows = numeric_evaluated_log(given)
        target = as_target(learner, rows, contexts=given.contexts)
        (columns,) = columns_for_values(rows, [target], fit_rewards(rows) if "dr" in self.estimator else None)
        found = estimate(self.estimator, columns.inputs)
        return float(found.value - self.pessimism * found.error) if self.pessimism else float(found.value)

    def _check(self) -> None:
        if self.estimator not in _ESTIMATORS:
            raise InvalidInput(f"estimator: found {self.estimator!r}, expected one of {', '.join(_ESTIMATORS)}")
        check_number("pessimism", self.pessimism, 0)


def _sklearn_columns(y: Any, learner: Any) -> tuple[Array, Floats, Floats]:
    rows = np.asarray(y)
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise InvalidInput(
            f"y: found shape {rows.shape}, expected three columns: feedback(actions, rewards, propensities)"
        )
    rewards, propensities = rows[:, 1].astype(np.float64), rows[:, 2].astype(np.float64)
    if are_action_names(rows[:, 0]):
        return np.asarray(rows[:, 0].tolist()), rewards, propensities
    actions: Array = rows[:, 0].astype(np.float64)
    if not learner._density:
        if (actions % 1).any():
            row = int(np.argmax(actions % 1 != 0))
            raise InvalidInput(f"action, row {row}: found {actions[row]:g}, expected an integer from 0")
        actions = actions.astype(np.int64)
    return actions, rewards, propensities
