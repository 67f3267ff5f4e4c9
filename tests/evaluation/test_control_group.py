"""A control group: the arms of the log against plain means, and what is wrong with its column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import o2pl
from o2pl import Interactions, InvalidInput, evaluate
from o2pl.data.contexts import ActionSets
from o2pl.data.frames import Frame, FrameColumn
from o2pl.evaluation.control_group import with_control_group

P, Q = 0.1, np.array([0.2, 0.2, 0.6])


def log_of(n: int = 4000, seed: int = 0, gain: float = 0.1) -> tuple[Interactions, Any]:
    """Rewards depend on x and the action; the control group, a tenth of the rows, earns less by `gain`."""
    g = np.random.default_rng(seed)
    x = g.normal(size=(n, 2))
    member = (g.random(n) < P) * 1
    actions = g.choice(3, size=n, p=Q)
    means = 0.4 + 0.25 * np.tanh(2 * x[:, 0]) + np.where(member, 0.0, gain + 0.1 * (actions == 2) - 0.06)
    rewards = (g.random(n) < means) * 1.0
    return Interactions(x, actions, rewards, Q[actions], (0, 1), 3), member


def test_the_service_against_its_control_group() -> None:
    log, member = log_of()
    found = evaluate(log, baseline="control", control=member)
    assert found.difference is not None
    assert found.baseline is not None
    plain = log.rewards[member == 0].mean() - log.rewards[member == 1].mean()
    error = np.sqrt(
        log.rewards[member == 0].var() / (member == 0).sum() + log.rewards[member == 1].var() / member.sum()
    )
    assert found.difference.value == pytest.approx(plain, abs=2 * error)
    width = found.difference.high - found.difference.low
    assert width < 0.98 * 2 * 1.96 * error  # x explains a part of the rewards
    assert str(found.judgement) == "the service is better than control, with 95% confidence"


def test_coverage_at_both_levels() -> None:
    """Of 100 logs 5 may miss; 12 or more with probability 4e-3. For any time far fewer."""
    missed = np.zeros(2)
    for seed in range(100):
        log, member = log_of(600, seed, 0.06)
        for k, any_time in enumerate((False, True)):
            gap = evaluate(log, control=member, control_share=P, at_any_time=any_time).difference
            assert gap is not None
            missed[k] += not gap.low <= 0.06 <= gap.high
    assert missed[0] < 12
    assert missed[1] < 6


def test_for_any_time_it_is_narrower_than_two_sequences_subtracted() -> None:
    log, member = log_of(20_000, 3)
    gap = evaluate(log, control=member, control_share=P, at_any_time=True).difference
    own, other = (o2pl.confidence_sequence(log.rewards[member == k], 0.025).last for k in (0, 1))
    assert gap is not None
    assert gap.high - gap.low < (own[1] - other[0]) - (own[0] - other[1])


def test_another_policy_against_the_control_group() -> None:
    log, member = log_of(8000, 1, 0.06)
    third = np.tile([0.0, 0.0, 1.0], (8000, 1))
    found = evaluate(log, third, baseline="control", control=member)
    assert found.difference is not None
    assert found.difference.low < 0.1 < found.difference.high
    as_function = evaluate(log, lambda x: np.tile([0.0, 0.0, 1.0], (len(x), 1)), control=member)
    assert as_function.difference.value == pytest.approx(found.difference.value)
    played = evaluate(log, third[np.arange(8000), log.actions], control=member)
    assert played.difference is not None
    assert played.difference.low < 0.1 < played.difference.high
    arms = with_control_group(log, [third], member)
    assert arms.log.n_actions == 4
    assert arms.log.action_names[-1] == "control"
    share = member.mean()
    np.testing.assert_allclose(arms.log.propensities, np.where(member, share, (1 - share) * log.propensities))
    several = evaluate(log, {"third": third, "logged": "logged"}, baseline="control", control=member, control_share=P)
    assert several.best == "third"
    assert {one.name for one in several.overall.candidates} == {"third", "logged", "control"}


def test_a_learner_that_has_learned_from_the_log_is_noticed() -> None:
    log, member = log_of(1500, 2)
    learner = o2pl.O2PL(3, policy="linear", random_state=0).fit(log)
    found = evaluate(log, learner, baseline="control", control=member)
    assert "learned from rows of this log" in found.doubt


def test_a_column_of_the_contexts_is_no_context() -> None:
    log, member = log_of(1000)
    columns = {"x": log.contexts[:, 0].astype(float), "control": member.astype(float)}
    frame = log.changed(contexts=Frame({name: FrameColumn("number", one) for name, one in columns.items()}, 1000))
    found = evaluate(frame, baseline="control")
    assert found.difference is not None
    assert list(with_control_group(frame, ["logged"]).log.contexts.columns) == ["x"]
    only = log.changed(contexts=Frame({"group": FrameColumn("number", member.astype(float))}, 1000))
    assert evaluate(only, baseline="control", control="group").difference is not None


def test_action_sets_and_metrics() -> None:
    log, member = log_of(800)
    sets = ActionSets(np.ones((1600, 2), np.float32), np.arange(0, 1601, 2))
    of_sets = Interactions(sets, log.actions % 2, log.rewards, np.full(800, 0.5), (0, 1))
    assert evaluate(of_sets, control=member).difference is not None
    with pytest.raises(InvalidInput, match="control: found a policy for action sets"):
        evaluate(of_sets, "uniform", control=member)
    found = evaluate(log, control=member, metrics={"clicks": "reward", "misses": 1 - log.rewards})
    assert found["clicks"].difference.value == pytest.approx(-found["misses"].difference.value, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "control: found no column 'control', expected a column of 0 and 1"),
        ({"control": "who"}, "control: found no column 'who'"),
        ({"control": [0, 1, 2] * 100}, "control, row 2: found 2, expected 0 or 1"),
        ({"control": [0.5] * 300}, "control, row 0: found 0.5, expected 0 or 1"),
        ({"control": [0, 1]}, r"control: found shape \(2,\), expected one number per row \(300\)"),
        ({"control": [0] * 300}, "control: found only 0, expected some rows in the control group and others"),
        ({"control": [0, 1] * 150, "baseline": "uniform"}, "control: found another baseline"),
        ({"control": [0, 1] * 150, "at_any_time": True}, "control_share: found None"),
        ({"control": [0, 1] * 150, "control_share": 1.5}, "control_share: found 1.5"),
    ],
)
def test_groups_that_cannot_be_used(changes: dict[str, Any], said: str) -> None:
    log, _ = log_of(300)
    with pytest.raises(InvalidInput, match=said):
        evaluate(log, **({"baseline": "control"} | changes))


def test_an_action_of_that_name_is_an_action() -> None:
    log, _ = log_of(600)
    named = log.changed(action_names=("control", "b", "c"))
    found = evaluate(named, "logged", baseline="control")
    assert found.baseline is not None
    assert found.baseline.name == "control"
    assert found.diagnostics.n == 600


def test_rows_that_no_coin_assigned_are_noticed() -> None:
    log, _ = log_of(3000)
    chosen = (log.contexts[:, 1] > 1) * 1
    assert evaluate(log, control=chosen, control_share=0.1).why_estimated
