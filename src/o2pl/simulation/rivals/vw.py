"""Vowpal Wabbit's contextual bandits, using the `vowpalwabbit` package (extra `vw`).

A decision is K + 1 VW examples: the shared context (namespace x) and one example per action (namespace a, an indicator
of the action). The action examples never change and are built once. In addition to VW's own work (3 µs and more), a
round builds the context's example twice, since the feature statistics change between deciding and learning (6 µs each,
and 0.1 µs per feature), and the labelled example of the played action (5 µs). With VW's text format, a round takes two
to four times as long.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from o2pl.data.decisions import Decision
from o2pl.errors import InvalidInput
from o2pl.extras import extra
from o2pl.features import Standardise
from o2pl.protocols import FeatureMap, Floats, Seed
from o2pl.simulation.rivals.discrete import DiscreteLearner
from o2pl.validation import check_number, check_pair, check_reward, check_reward_range

STANDARDISED = Standardise()

# The learners of the paper's benchmark.
ALGORITHMS = {
    "greedy": "--cb_explore_adf --epsilon 0",
    "cover": "--cb_explore_adf --cover 3 --nounif",
    "bag": "--cb_explore_adf --bag 3 --greedify",
    "regcb": "--cb_explore_adf --regcbopt",
}


@dataclass(eq=False, repr=False)
class VowpalWabbit(DiscreteLearner):
    """VW computes the probability of each action; the action is drawn here, with o2pl's seeded random numbers.

    Parameters
    ----------
    n_actions
        Number of actions K.
    algorithm
        "greedy", "cover" (Cover-nu, 3 policies), "bag" (Bag-greedy, 3 policies), "regcb" (RegCB, optimistic).
    features
        The feature map. Default: running standardisation. On raw features (`Chain()`), VW is far weaker. VW adds its
        own constant.
    interactions
        Products of namespaces, such as "ax" (action and context). Features of the context alone are dropped: they do
        not depend on the action.
    constant
        Whether VW uses its constant feature. The paper's `a,ax` has none; VW does better with it.
    costs
        VW's costs of the best and of the worst reward: (0, 1), or (-1, 0).
    learning_rate
        Learning rate of VW.
    options
        Further VW options, as on its command line.
    reward_range
        Lowest and highest possible reward.
    random_state
        Seed, numpy Generator or None; draws the actions and VW's own seed.
    """

    n_actions: int
    algorithm: str = "greedy"
    _: KW_ONLY
    features: FeatureMap = STANDARDISED
    interactions: str = "ax"
    constant: bool = True
    costs: tuple[float, float] = (0.0, 1.0)
    learning_rate: float = 0.5
    options: str = ""
    reward_range: tuple[float, float] = (0.0, 1.0)
    random_state: Seed = None

    def arguments(self) -> str:
        """Return VW's command line, without the seed."""
        if self.algorithm not in ALGORITHMS:
            raise InvalidInput(f"algorithm: found {self.algorithm!r}, expected one of {sorted(ALGORITHMS)}")
        best, worst = check_pair("costs", self.costs)
        given = [ALGORITHMS[self.algorithm]]
        if self.algorithm == "regcb":  # it predicts within these bounds; with wrong bounds it is close to random
            given.append(f"--cb_min_cost {best:g} --cb_max_cost {worst:g}")
        if self.interactions:
            given.append(f"--interactions {self.interactions}")
        given.append("--ignore_linear x")
        if not self.constant:
            given.append("--noconstant")
        given.append(f"--learning_rate {check_number('learning_rate', self.learning_rate, 0, open_low=True):g}")
        if self.options:
            given.append(self.options)
        return " ".join(given)

    def _begin(self, width: int, n_features: int) -> None:
        arguments = self.arguments()
        self._cost_range = check_pair("costs", self.costs)
        self._range = check_reward_range(self.reward_range)
        seed = int(self._stream.next() * 2**31)
        self._examples = _Examples(f"{arguments} --random_seed {seed}", self.n_actions, n_features)

    def _check_reward(self, reward: object) -> None:
        check_reward(reward, self._range)

    def probabilities(self, features: Floats) -> Floats:
        """Return VW's probability of each action for one row of features, [K]."""
        return self._examples.predict(features)

    def _decide(self, features: Floats) -> Decision:
        return self._drawn(self.probabilities(features))

    def _learn(self, row: Floats, action: int, reward: float, propensity: float) -> None:
        self._observe(row)
        (low, high), (best, worst) = self._range, self._cost_range
        cost = best + (worst - best) * (high - reward) / (high - low)
        self._examples.learn(self._transform(row), action, cost, propensity)


class _Examples:
    """A VW workspace and its examples."""

    def __init__(self, arguments: str, n_actions: int, n_features: int) -> None:
        with extra("vw", "Vowpal Wabbit as a rival"):
            import vowpalwabbit
        self._package = vowpalwabbit
        self._vw = vowpalwabbit.Workspace(f"{arguments} --quiet")
        self._spaces = {name: self._vw.hash_space(name) for name in "ax"}
        self._inputs = [self._vw.hash_feature(str(i), self._spaces["x"]) for i in range(n_features)]
        self._indicators = [self._vw.hash_feature(str(k), self._spaces["a"]) for k in range(n_actions)]
        self._actions = [self._action(k) for k in range(n_actions)]

    def _example(self, namespace: str, features: list[tuple[int, float]], label: str | None) -> Any:
        example = self._package.Example(self._vw, None, self._package.LabelType.CONTEXTUAL_BANDIT)
        example.ensure_namespace_exists(namespace)
        example.push_feature_list(self._vw, ord(namespace), self._spaces[namespace], features)
        if label is not None:
            example.set_label_string(label)
        self._vw.setup_example(example)
        return example

    def _action(self, action: int, label: str | None = None) -> Any:
        return self._example("a", [(self._indicators[action], 1.0)], label)

    def _context(self, features: Floats) -> Any:
        return self._example("x", list(zip(self._inputs, features.tolist(), strict=True)), "shared")

    def predict(self, features: Floats) -> Floats:
        context = self._context(features)
        self._vw.predict_multi([context, *self._actions])
        return np.array(context.get_action_scores())

    def learn(self, features: Floats, action: int, cost: float, propensity: float) -> None:
        actions = self._actions.copy()
        actions[action] = self._action(action, f"0:{cost!r}:{propensity!r}")  # VW ignores the number before the cost
        self._vw.learn_multi([self._context(features), *actions])
