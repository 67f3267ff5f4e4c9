"""`.venv-peers/bin/python -m reproduction.peers.offline_obp FOLDER LEARNER ...`: OBP on the logs in FOLDER.

Runs in the peers' environment. Each `NAME.npz` is one log: contexts, actions, rewards, propensities and n_actions; the
contexts `fresh` on which a policy is valued; and `target_*`, the probabilities of a policy in the rows of the log. For
each, `NAME.json` says which action every learner takes at the fresh contexts, and what every estimator says of every
target. `offline_obp_rows.py` writes the logs and reads the answers.

All settings are OBP's own or those of its examples; contexts are standardised by the log, as our learners do.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peer_loops import _obp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression


def logistic() -> Any:
    return LogisticRegression(max_iter=1000, random_state=0)


def forest() -> Any:
    return RandomForestClassifier(n_estimators=100, min_samples_leaf=10, random_state=0)


def learners(n_actions: int) -> dict[str, Any]:
    """IPW: a classifier of actions, weighed by reward / propensity. Q: its direct method, one model of context and
    action."""
    policy = _obp("policy")
    return {
        "obp-ipw": policy.IPWLearner(n_actions=n_actions, base_classifier=logistic()),
        "obp-ipw-forest": policy.IPWLearner(n_actions=n_actions, base_classifier=forest()),
        "obp-q": policy.QLearner(n_actions=n_actions, base_model=logistic()),
        "obp-q-forest": policy.QLearner(n_actions=n_actions, base_model=forest()),
    }


def choices(log: dict[str, Any], names: list[str]) -> dict[str, list[int]]:
    """Learner -> its action at each of the fresh contexts."""
    given = {"context": log["contexts"], "action": log["actions"], "reward": log["rewards"]}
    found = {}
    made = learners(int(log["n_actions"]))
    for name, learner in ((each, made[each]) for each in names):
        learner.fit(**given, pscore=log["propensities"])
        found[name] = [int(each) for each in learner.predict(log["fresh"])[:, :, 0].argmax(axis=1)]
    return found


def estimates(log: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Target -> estimator -> its value, with OBP's regression model (logistic, three folds)."""
    ope = _obp("ope")
    common = {"reward": log["rewards"], "action": log["actions"], "position": np.zeros(len(log["rewards"]), int)}
    model = ope.RegressionModel(n_actions=int(log["n_actions"]), base_model=logistic())
    predicted = model.fit_predict(context=log["contexts"], **common, n_folds=3, random_state=0)
    modelled = {"estimated_rewards_by_reg_model": predicted}
    weighed = common | {"pscore": log["propensities"]}
    found = {}
    for name in (each for each in log if each.startswith("target_")):
        dist = {"action_dist": log[name][:, :, None]}
        direct = dist | {"position": common["position"]}
        found[name.removeprefix("target_")] = {
            "ips": float(ope.InverseProbabilityWeighting().estimate_policy_value(**weighed, **dist)),
            "snips": float(ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**weighed, **dist)),
            "dm": float(ope.DirectMethod().estimate_policy_value(**direct, **modelled)),
            "dr": float(ope.DoublyRobust().estimate_policy_value(**weighed, **dist, **modelled)),
        }
    return found


def answered(log: dict[str, Any], names: list[str]) -> dict[str, Any]:
    mean, deviation = log["contexts"].mean(axis=0), log["contexts"].std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    log = log | {name: (log[name] - mean) / scale for name in ("contexts", "fresh")}
    return {"choices": choices(log, names), "estimates": estimates(log)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for path in sorted(Path(sys.argv[1]).glob("*.npz")):
        with np.load(path) as stored:
            said = answered({name: stored[name] for name in stored.files}, sys.argv[2:])
        path.with_suffix(".json").write_text(json.dumps(said))
