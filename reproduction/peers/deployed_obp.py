"""`.venv-peers/bin/python -m reproduction.peers.deployed_obp OUT.json`: OBP's own numbers for the study `deployed`.

Runs in the peers' environment, on the small Open Bandit Dataset that is part of obp, with OBP's regression model
(logistic, three folds) and its estimators as they come.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # its types are another package
from benchmarks.peer_loops import _obp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import LabelEncoder


def feedback_of(policy: str, campaign: str) -> dict[str, Any]:
    """As OBP reads it. Its own `pre_process` calls pandas in a way that is refused now; this does the same."""

    def pre_process(self: Any) -> None:
        words = self.data.columns.str.contains("user_feature")
        self.context = pd.get_dummies(self.data.loc[:, words], drop_first=True).to_numpy(float)
        items = self.item_context.drop(columns=["item_id", "item_feature_0"]).apply(LabelEncoder().fit_transform)
        self.action_context = pd.concat([items, self.item_context["item_feature_0"]], axis=1).to_numpy(float)

    kind = _obp("dataset").OpenBanditDataset
    found: dict[str, Any] = type("Mended", (kind,), {"pre_process": pre_process})(
        behavior_policy=policy, campaign=campaign
    ).obtain_batch_bandit_feedback()
    return found


def values(campaign: str, logger: str, policy: str) -> dict[str, float]:
    ope = _obp("ope")
    feedback, other = (feedback_of(one, campaign) for one in (logger, policy))
    k, places = feedback["n_actions"], feedback["position"]
    table = np.full((3, k), 1 / k)
    if policy == "bts":
        counts = [np.bincount(other["action"][other["position"] == one], minlength=k) for one in range(3)]
        table = np.stack([count / count.sum() for count in counts])
    dist = np.repeat(table.T[None], len(places), axis=0)  # [n, K, positions]
    settings: dict[str, Any] = {"n_actions": k, "len_list": 3, "action_context": feedback["action_context"]}
    model = ope.RegressionModel(**settings, base_model=LogisticRegression(max_iter=1000, random_state=0))
    common = {key: feedback[key] for key in ("reward", "action", "position")}
    predicted = model.fit_predict(context=feedback["context"], **common, n_folds=3, random_state=0)
    common |= {"pscore": feedback["pscore"], "action_dist": dist}
    modelled = {"estimated_rewards_by_reg_model": predicted}
    direct = {"action_dist": dist, "position": places, **modelled}
    return {
        "ips": float(ope.InverseProbabilityWeighting().estimate_policy_value(**common)),
        "snips": float(ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**common)),
        "dm": float(ope.DirectMethod().estimate_policy_value(**direct)),
        "dr": float(ope.DoublyRobust().estimate_policy_value(**common, **modelled)),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {
        f"{campaign}: {logger} to {policy}": values(campaign, logger, policy)
        for campaign in ("all", "men", "women")
        for logger, policy in (("random", "bts"), ("bts", "random"))
    }
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n")
