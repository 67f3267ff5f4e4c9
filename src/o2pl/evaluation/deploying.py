"""`learner.safe_to_deploy`: the judgement of a learner against a baseline, on rows that it has not learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from o2pl.errors import InvalidInput
from o2pl.evaluation.evaluate import evaluate
from o2pl.evaluation.evaluated_logs import as_evaluated_log
from o2pl.evaluation.intervals import check_interval_delta
from o2pl.evaluation.judgement import DeployVerdict, judgement_on_deploying
from o2pl.learners.base import BanditEstimator


def safe_to_deploy(learner: BanditEstimator, baseline: object, delta: float, fresh: object = None) -> DeployVerdict:
    """Judge at any time, with a lower bound at level δ. Without fresh rows: a copy that learns from half of the log."""
    check_interval_delta(delta)
    if fresh is not None:
        learner._begun()
        return _judged_for_deploying(fresh, learner, baseline, delta, learner.log_.reward_range)
    log = learner.log_
    half = len(log) // 2
    if half == 0:
        raise InvalidInput(f"log: found {len(log)} rows, expected at least two, or `fresh` rows")
    trial = type(learner)(**learner.get_params()).fit(log[:half])
    return _judged_for_deploying(log[half:], trial, baseline, delta, log.reward_range)


def _judged_for_deploying(rows: Any, learner: BanditEstimator, baseline: Any, delta: float, ends: Any) -> DeployVerdict:
    if ends is None and as_evaluated_log(rows).reward_range is None:
        raise InvalidInput(
            "reward_range: found None with rewards that are not all from 0 to 1, expected the lowest and highest"
            f" possible reward: {type(learner).__name__}(reward_range=(lowest, highest)), or the `reward_range` of"
            " `fresh`. For rewards without one, such as revenue: evaluate(..., truncate=(lowest, highest),"
            " at_any_time=True)"
        )
    two_sided = min(2 * delta, 1 - 1e-9)
    found = evaluate(rows, learner, baseline=baseline, at_any_time=True, delta=two_sided, reward_range=ends)
    return judgement_on_deploying(replace(found.safe_to_deploy().judgement, confidence=1 - delta))
