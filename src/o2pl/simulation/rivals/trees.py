"""Gradient-boosted trees on (context, action), refitted on a schedule: scikit-learn (extra `experiments`)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any

import numpy as np

from o2pl.data.decisions import Decision
from o2pl.extras import extra
from o2pl.features import Chain
from o2pl.protocols import FeatureMap, Floats, Ints
from o2pl.simulation.rivals.discrete import HistoryLearner
from o2pl.validation import check_count, check_number

_RAW = Chain()  # no scaling: trees do not need it


@dataclass(eq=False, repr=False)
class BoostedTrees(HistoryLearner):
    """ε-greedy on one `HistGradientBoostingRegressor`, which predicts the reward from the context and the action.

    The action is a categorical feature. The first `warm_start` · K rounds are uniform; then the model is fitted to the
    whole history whenever that has grown by `growth`.

    Parameters
    ----------
    n_actions
        Number of actions K; at most 255 (scikit-learn's limit of categories).
    epsilon
        ε in [0, 1].
    trees, leaves, learning_rate
        Number of trees, leaves per tree, and learning rate of the model.
    warm_start
        Number of uniform rounds per action.
    features
        The feature map. Default: raw contexts.
    growth, reward_range, random_state
        As for `EpsilonGreedy`.
    """

    _: KW_ONLY
    epsilon: float = 0.05
    trees: int = 50
    leaves: int = 15
    learning_rate: float = 0.1
    warm_start: int = 5
    features: FeatureMap = _RAW
    growth: float = 1.5

    def _begin(self, width: int, n_features: int) -> None:
        with extra("experiments", "boosted trees as a rival"):
            import sklearn.ensemble  # noqa: F401  # missing: said before anything is learned
        check_number("n_actions", self.n_actions, 1, 255)
        check_number("epsilon", self.epsilon, 0, 1)
        for name in ("trees", "leaves", "warm_start"):
            check_count(name, getattr(self, name))
        check_number("learning_rate", self.learning_rate, 0, open_low=True)
        super()._begin(width, n_features)
        self._next_fit = self.warm_start * self.n_actions
        self._model: Any = None
        self._rows = np.zeros((self.n_actions, n_features + 1))  # the context with every action, [K, d + 1]
        self._rows[:, -1] = np.arange(self.n_actions)

    def _decide(self, features: Floats) -> Decision:
        if self._model is None:
            return self._mostly(0, 1.0)
        self._rows[:, :-1] = features
        with _openmp_of_trees().limit(limits=1):
            found = self._model.predict(self._rows)
        return self._mostly(int(np.argmax(found)), self.epsilon)

    def _fit_to(self, features: Floats, actions: Ints, shares: Floats) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(
            learning_rate=self.learning_rate,
            max_iter=self.trees,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=5,
            categorical_features=[features.shape[1]],
            early_stopping=False,
            random_state=0,  # has no effect: neither rows nor features are sampled
        )
        with _openmp_of_trees().limit(limits=1):
            self._model = model.fit(np.column_stack([np.asarray(features, np.float64), actions]), shares)


@cache
def _openmp_of_trees() -> Any:
    """Return the control of scikit-learn's threads. Every tree waits for all of them: on busy cores, milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="openmp")
