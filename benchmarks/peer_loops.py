"""Other libraries at work, in a process of their own: `python peer_loops.py FOLDER`, which needs numpy and the library.

FOLDER holds the columns, one `.npy` each. A line on standard input asks, a line on standard output answers:

    {"task": "loop", "peer": "river", "rounds": 4000}      ->  {"seconds": 0.9, "mean": 0.74}
    {"task": "evaluate", "peer": "obp", "resamples": 100}  ->  {"seconds": 0.8, "values": [[...], [...], [...]]}
    {"task": "estimates", "peer": "obp", "settings": {...}}    ->  {"seconds": 0, "values": {"ips": ..., ...}}
    {"task": "fit", "peer": "obp", "learner": "ipw"}           ->  {"seconds": 4.0, "mean": 0.66}

or {"error": why}. The clock is this process's own and runs while the library works: imports and what is made ready
beforehand are outside. All run their disjoint LinUCB (ridge regression per action), the cheapest learner that all have
and that uses contexts; none tells the probability of its action. Contexts come as each library wants them: in a loop,
making them so is timed; for a library's own driver (`drive`) they are made ready beforehand.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Act = Callable[[Any], Any]
Update = Callable[[Any, Any, float], Any]
Columns = dict[str, Any]
WIDTH = 0.2  # of the confidence bounds


def mabwiser(d: int, n_actions: int) -> tuple[Act, Update]:
    package = importlib.import_module("mabwiser.mab")
    learner = package.MAB(list(range(n_actions)), package.LearningPolicy.LinUCB(alpha=WIDTH), seed=0)
    learner.fit([0], [0.0], [[0.0] * d])  # it must be fitted before it predicts; this row says nothing
    return (
        lambda context: learner.predict(context[None]),
        lambda context, action, reward: learner.partial_fit([action], [reward], context[None]),
    )


def river(d: int, n_actions: int) -> tuple[Act, Update]:
    """Its `alpha` is the precision of the prior; the width of the bounds is one standard deviation, fixed."""
    learner = importlib.import_module("river.bandit").LinUCBDisjoint(alpha=1.0, beta=1.0, seed=0)
    arms = list(range(n_actions))

    def features(context: Any) -> dict[int, float]:
        return dict(enumerate(context.tolist()))

    return (
        lambda context: learner.pull(arms, context=features(context)),
        lambda context, action, reward: learner.update(action, features(context), reward),
    )


def contextualbandits(d: int, n_actions: int) -> tuple[Act, Update]:
    """With the changes of the defaults that its documentation recommends."""
    package = importlib.import_module("contextualbandits.online")
    learner = package.LinUCB(n_actions, alpha=WIDTH, ucb_from_empty=False, beta_prior="auto", random_state=1)
    return (
        lambda context: int(learner.predict(context[None])[0]),
        lambda context, action, reward: learner.partial_fit(context[None], np.array([action]), np.array([reward])),
    )


def _coba_arms(n_actions: int) -> list[tuple[float, ...]]:
    return [tuple(float(k == j) for j in range(n_actions)) for k in range(n_actions)]


def _coba_learner() -> Any:
    """Its features are those of the pair of context and action, a cross product: O((d K)²) a round."""
    return importlib.import_module("coba").LinUCBLearner(alpha=WIDTH, features=["a", "ax"], seed=0)


def coba(d: int, n_actions: int) -> tuple[Act, Update]:
    learner, arms = _coba_learner(), _coba_arms(n_actions)
    last: list[float] = []

    def act(context: Any) -> int:
        action, probability = learner.predict(tuple(context.tolist()), arms)
        last[:] = [probability]
        return arms.index(tuple(action))

    def update(context: Any, action: int, reward: float) -> None:
        learner.learn(tuple(context.tolist()), arms[action], reward, last[0])

    return act, update


def _obp(module: str) -> Any:
    """Of OBP, which imports torch for its neural networks alone: an empty torch will do for the rest."""
    names = ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils", "torch.utils.data")
    for name in names:
        if name not in sys.modules:
            empty: Any = types.ModuleType(name)
            empty.__getattr__ = lambda _: object
            sys.modules[name] = empty
            above, _, last = name.rpartition(".")
            if above:
                setattr(sys.modules[above], last, empty)
    return importlib.import_module(f"obp.{module}")


def _obp_learner(d: int, n_actions: int) -> Any:
    return _obp("policy").LinUCB(dim=d, n_actions=n_actions, epsilon=WIDTH, random_state=0)


def obp(d: int, n_actions: int) -> tuple[Act, Update]:
    learner = _obp_learner(d, n_actions)
    return (
        lambda context: int(learner.select_action(context[None])[0]),
        lambda context, action, reward: learner.update_params(action, reward, context[None]),
    )


def obp_evaluate(columns: Columns, resamples: int) -> list[list[float]]:
    """IPS, SNIPS and DR: mean, lower and upper end of each by OBP's bootstrap."""
    package = _obp("ope")
    common = {key: columns[key] for key in ("reward", "action", "pscore")}
    common |= {"action_dist": columns["action_dist"][:, :, None], "position": np.zeros(len(common["reward"]), int)}
    settings = {"n_bootstrap_samples": resamples, "random_state": 0}
    plain = (package.InverseProbabilityWeighting(), package.SelfNormalizedInverseProbabilityWeighting())
    model = {"estimated_rewards_by_reg_model": columns["predicted"][:, :, None]}
    found = [one.estimate_interval(**common, **settings) for one in plain]
    found.append(package.DoublyRobust().estimate_interval(**common, **model, **settings))
    return [[float(value) for value in one.values()] for one in found]


def obp_fit(columns: Columns, name: str) -> tuple[float, float]:
    """Its off-policy learners. "ipw": a classifier of actions, weighed by reward / propensity; "nn": a policy network.

    Seconds, and the exact value of the policy.
    """
    n_actions = int(columns["actions"].max()) + 1
    if name == "nn":
        importlib.import_module("torch").set_num_threads(1)  # the real one; of a small network a second thread waits
        kind, d = _obp("policy").NNPolicyLearner, columns["contexts"].shape[1]
        learner = kind(n_actions=n_actions, dim_context=d, off_policy_objective="ipw", random_state=0)
    else:
        model = importlib.import_module("sklearn.linear_model").LogisticRegression(max_iter=1000)
        learner = _obp("policy").IPWLearner(n_actions=n_actions, base_classifier=model)
    given = {"context": columns["contexts"], "action": columns["actions"], "reward": columns["rewards"]}
    start = time.perf_counter()
    learner.fit(**given, pscore=columns["propensities"])
    took = time.perf_counter() - start
    likely = learner.predict_proba(columns["fresh"]) if name == "nn" else learner.predict(columns["fresh"])
    return took, float((likely[:, :, 0] * columns["means"]).sum(axis=1).mean())


def obp_estimates(columns: Columns, clip: float, switch: float, shrinkage: float) -> dict[str, float]:
    """The point estimate of every estimator that both libraries have, under our names."""
    package = _obp("ope")
    common = {key: columns[key] for key in ("reward", "action", "pscore")}
    common |= {"action_dist": columns["action_dist"][:, :, None], "position": np.zeros(len(common["reward"]), int)}
    model = {"estimated_rewards_by_reg_model": columns["predicted"][:, :, None]}
    plain = {
        "ips": package.InverseProbabilityWeighting(),
        "snips": package.SelfNormalizedInverseProbabilityWeighting(),
        "clipped": package.InverseProbabilityWeighting(lambda_=clip),
    }
    modelled = {
        "dr": package.DoublyRobust(),
        "sndr": package.SelfNormalizedDoublyRobust(),
        "switch-dr": package.SwitchDoublyRobust(lambda_=switch),
        "dr-shrinkage": package.DoublyRobustWithShrinkage(lambda_=shrinkage),
    }
    found = {name: one.estimate_policy_value(**common) for name, one in plain.items()}
    found |= {name: one.estimate_policy_value(**common, **model) for name, one in modelled.items()}
    direct = {"action_dist": common["action_dist"], "position": common["position"], **model}
    found["dm"] = package.DirectMethod().estimate_policy_value(**direct)
    return {name: float(value) for name, value in found.items()}


LOOPS: dict[str, Callable[[int, int], tuple[Act, Update]]] = {
    "mabwiser": mabwiser,
    "river": river,
    "contextualbandits": contextualbandits,
    "coba": coba,
    "obp": obp,
}


def loop(name: str, contexts: Any, rewards: list[list[float]]) -> float:
    """Act, then update, every round; the mean reward."""
    act, update = LOOPS[name](contexts.shape[1], len(rewards[0]))
    total = 0.0
    for context, row in zip(contexts, rewards, strict=True):
        action = act(context)
        update(context, action, row[action])
        total += row[action]
    return total / len(rewards)


def answer(question: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """The work that is asked for, and the seconds it took."""
    task, peer = question["task"], question["peer"]
    if task == "estimates":
        return {"seconds": 0.0, "values": obp_estimates(columns, **question["settings"])}
    if task == "fit":
        took, value = obp_fit(columns, question["learner"])
        return {"seconds": took, "mean": value}
    if task == "evaluate":
        _obp("ope")
        start = time.perf_counter()
        values = obp_evaluate(columns, question["resamples"])
        return {"seconds": time.perf_counter() - start, "values": values}
    contexts, rewards = columns["contexts"][: question["rounds"]], columns["rewards"][: question["rounds"]]
    LOOPS[peer](contexts.shape[1], rewards.shape[1])  # imports it
    table, start = rewards.tolist(), time.perf_counter()
    mean = loop(peer, contexts, table)
    return {"seconds": time.perf_counter() - start, "mean": mean}


def serve(folder: Path) -> None:
    """Answer until the input ends."""
    warnings.simplefilter("ignore")
    columns = {path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))}
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what a library prints is no answer
        for line in sys.stdin:
            try:
                said = answer(json.loads(line), columns)
            except Exception as error:  # whatever a library raises: the parent says it
                said = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
            print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
