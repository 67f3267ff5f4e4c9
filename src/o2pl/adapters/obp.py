"""A learner for the Open Bandit Pipeline, with the interface of `BaseOfflinePolicyLearner`.

from o2pl.adapters.obp import OBPLearner
learner = OBPLearner(n_actions=feedback["n_actions"])
learner.fit(feedback["context"], feedback["action"], feedback["reward"], feedback["pscore"])
action_dist = learner.predict(test["context"])  # or predict_proba, for `OffPolicyEvaluation`
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.learners import Bandit
from o2pl.protocols import Floats
from o2pl.validation import check_count


class OBPLearner:
    """An OBP learner. `learner`: trained once per position of the list; default: `Bandit`.

    A copy with the same settings is fitted, so the given learner is unchanged.
    """

    def __init__(self, n_actions: int, len_list: int = 1, learner: Any = None) -> None:
        self.n_actions, self.len_list = check_count("n_actions", n_actions), check_count("len_list", len_list)
        if len_list > n_actions:
            raise InvalidInput(f"len_list: found {len_list}, expected at most {n_actions}, the number of actions")
        self.learner = Bandit(random_state=0) if learner is None else learner
        self.learners_: list[Any] = []

    @property
    def policy_type(self) -> Any:
        """OBP's type of this policy."""
        from obp.policy.policy_type import PolicyType

        return PolicyType.OFFLINE

    def fit(self, context: Any, action: Any, reward: Any, pscore: Any = None, position: Any = None) -> Self:
        """Fit to OBP's columns. Without `pscore`, propensities are 1/n_actions, as in OBP's learners."""
        actions = np.asarray(action)
        propensities = np.full(len(actions), 1 / self.n_actions) if pscore is None else np.asarray(pscore)
        if self.len_list == 1:
            places = np.zeros(len(actions), np.int64)
        elif position is None:
            raise InvalidInput(f"position: found None, expected one per row for a list of {self.len_list}")
        else:
            places = np.asarray(position)
        contexts, rewards, learners = np.asarray(context), np.asarray(reward, np.float64), []
        for place in range(self.len_list):
            rows = np.flatnonzero(places == place)
            if not len(rows):
                raise InvalidInput(f"position: found no row of position {place}, expected rows of every position")
            own = type(self.learner)(**{**self.learner.get_params(), "n_actions": self.n_actions})
            learners.append(own.fit(contexts[rows], actions[rows], rewards[rows], propensities[rows]))
        self.learners_ = learners
        return self

    def predict(self, context: object) -> Floats:
        """Return 1 for the most likely action of each position, 0 elsewhere. [n, n_actions, len_list]"""
        probabilities = self.predict_proba(context)
        return np.asarray(probabilities.argmax(axis=1)[:, None, :] == np.arange(self.n_actions)[:, None]).astype(float)

    def predict_proba(self, context: object) -> Floats:
        """Return the probabilities of all actions. [n, n_actions, len_list]"""
        if not self.learners_:
            raise InvalidInput("predict: the learner has no data; call fit first")
        return np.stack([learner.predict_proba(np.asarray(context)) for learner in self.learners_], axis=2)
