"""SLOPE: OBP's choice, and the quiet level where the reward model is right, the unbiased one where it is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.adapters.inside import run_inside
from tests.evaluation.cases import log_of, policy

from o2pl import InvalidInput, evaluate
from o2pl.evaluation.estimators import EstimatorInput, EstimatorSettings, estimator_input, estimator_rows
from o2pl.evaluation.slope import slope, slope_tuned

LEVELS = [1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 4096.0]


def tables(seed: int, wrong: float) -> dict[str, np.ndarray]:
    """Predictions that are wrong by so much in all rows."""
    g = np.random.default_rng(seed)
    n, k = 2000, 6
    q, pi = g.dirichlet(np.ones(k), n), g.dirichlet(np.ones(k) * 0.3, n)
    action = (q.cumsum(axis=1) < g.random(n)[:, None]).sum(axis=1).clip(max=k - 1)
    means = g.random((n, k))
    return {
        "reward": (g.random(n) < means[np.arange(n), action]) * 1.0, "action": action,
        "pscore": np.maximum(q[np.arange(n), action], 1e-3), "action_dist": pi,
        "predicted": np.clip(means + wrong, 0, 1),
    }  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.5])
def test_the_choice_is_obps(wrong: float, tmp_path: Path) -> None:
    given = tables(0, wrong)
    np.savez(tmp_path / "given.npz", **given)
    said = run_inside(
        "obp",
        f"""
        import json
        import numpy as np
        from benchmarks.peer_loops import _obp
        ope = _obp("ope")
        given = np.load({str(tmp_path / "given.npz")!r})
        found = {{}}
        for name, kind in (("switch-dr", ope.SwitchDoublyRobustTuning),
                           ("dr-shrinkage", ope.DoublyRobustWithShrinkageTuning)):
            tuning = kind(lambdas={LEVELS}, tuning_method="slope", delta=0.05)
            value = tuning.estimate_policy_value(
                reward=given["reward"], action=given["action"], pscore=given["pscore"],
                action_dist=given["action_dist"][:, :, None],
                estimated_rewards_by_reg_model=given["predicted"][:, :, None],
            )
            found[name] = [float(tuning.best_hyperparam), float(value)]
        print(json.dumps(found))
        """,
    )
    theirs = json.loads(said.splitlines()[-1])
    columns = estimator_input(*given.values())
    for name, setting in (("switch-dr", "switch"), ("dr-shrinkage", "shrinkage")):
        terms = [estimator_rows(name, columns, EstimatorSettings(**{setting: level})) for level in LEVELS]
        chosen = slope(terms)
        assert [LEVELS[chosen], terms[chosen].mean()] == pytest.approx(theirs[name], rel=1e-9), name


def test_quiet_where_levels_agree_and_unbiased_where_they_do_not() -> None:
    g = np.random.default_rng(1)
    noise = g.normal(size=(3, 4000))
    agreeing = [4 * noise[0], 2 * noise[1], noise[2]]
    assert slope(agreeing) == 2
    apart = [4 * noise[0], 2 * noise[1], noise[2] + 5]
    assert slope(apart) == 1
    assert slope([noise[0]]) == 0


def test_levels_of_evaluate() -> None:
    plain = EstimatorSettings.theory(2000)
    right, wrong = (slope_tuned(plain, estimator_input(*tables(2, off).values())) for off in (0.0, 0.5))
    assert right.switch < wrong.switch
    assert right.shrinkage < wrong.shrinkage
    few = EstimatorInput(np.ones(5), np.ones(5), np.ones(5), np.ones(5))
    assert slope_tuned(plain, few) == plain
    assert slope_tuned(plain, EstimatorInput(np.ones(50), np.full(50, 2.0))) == plain
    same = np.ones(50)
    assert slope_tuned(plain, EstimatorInput(same, same, same, same)) == plain


def test_evaluate_uses_them_when_asked() -> None:
    log = log_of(2000)
    plain, chosen = (evaluate(log, policy, levels=levels) for levels in ("theory", "slope"))
    values = [{one.name: one.value for one in found.estimates} for found in (plain, chosen)]
    assert values[0]["dr"] == values[1]["dr"]
    assert values[0]["switch-dr"] != values[1]["switch-dr"]
    assert abs(values[1]["switch-dr"] - values[1]["dr"]) < 0.1
    with pytest.raises(InvalidInput, match="levels: found 'best', expected 'theory' or 'slope'"):
        evaluate(log, policy, levels="best")
    with pytest.raises(InvalidInput, match="found several policies with estimators, levels"):
        evaluate(log, {"a": policy, "b": "uniform"}, levels="slope")
    with pytest.raises(InvalidInput, match="metrics: found several policies, segments, estimators, levels"):
        evaluate(log, policy, metrics={"clicks": "reward"}, levels="slope")
