"""Arms of a learner, and what their rows say of penalty and clip."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from o2pl import O2PL
from o2pl.protocols import Floats
from o2pl_reproduction.studies.pessimism import LearnerArms, by_seed, figure_of_arms, gain, times_less

ARMS = LearnerArms("o2pl", "O2PL", penalty=0.1)
REWARD = gain("mean reward", "seeds", negligible=0.01)
NOISE = np.random.default_rng(0).normal(0, 0.2, 10)  # of the seeds: the same for all arms


def values(effects: dict[tuple[float, bool], float], arms: LearnerArms = ARMS) -> dict[str, Floats]:
    """Every arm at .5 with its effect; 0 where none is given."""
    own = np.random.default_rng(1)
    return {name: 0.5 + NOISE + effects.get(arm, 0.0) + own.normal(0, 0.001, 10) for name, arm in arms.names.items()}


def verdicts(found: dict[str, Floats], arms: LearnerArms = ARMS) -> dict[str, str]:
    claims = arms.claims("toy/o2pl", found, REWARD)
    assert all(claim.whose == "own" for claim in claims)
    return {claim.id.removeprefix("toy/o2pl-"): claim.verdict.removeprefix("our own question: ") for claim in claims}


def test_arms_differ_in_penalty_and_clip_alone() -> None:
    settings = ARMS.settings()
    assert set(settings) == {
        "o2pl-penalty-0-clip",
        "o2pl-penalty-1-clip",
        "o2pl-penalty-0-no-clip",
        "o2pl-penalty-0.1-no-clip",
        "o2pl-penalty-1-no-clip",
    }
    assert ARMS.names["o2pl"] == (0.1, True)  # the learner itself: no second name for the same settings
    assert set(ARMS.labels()) == set(settings)
    own = O2PL().get_params()
    for name, given in settings.items():
        made = O2PL(**given).get_params()
        assert {key for key in own if made[key] != own[key]} <= {"penalty", "clip"}
        assert (made["penalty"], made["clip"] is not None) == ARMS.names[name]
    tuned = LearnerArms("ours", "Ours", penalty=0.3, clip=5.0)
    assert tuned.penalties == (0.0, 0.1, 0.3, 1.0)
    assert tuned.settings()["ours-penalty-1-clip"] == {"penalty": 1.0, "clip": 5.0}
    assert len(tuned.settings()) == 7
    bare = LearnerArms("bare", "Bare", penalty=0.0, is_clipped=False)
    assert bare.names["bare"] == (0.0, False)
    assert len(bare.settings()) == 5


def test_verdicts_follow_the_arms() -> None:
    helps = values({(0.1, True): 0.05, (1.0, True): -0.05, (0.1, False): 0.05})
    assert verdicts(helps) == {
        "penalty-0.1": "yes",
        "penalty-1": "no",
        "clip": "undecided",
        "clip-alone": "undecided",
        "pessimism": "yes",
        "negligible": "no",
    }
    clip = verdicts(values({(0.0, True): 0.05, (0.1, True): 0.05, (1.0, True): 0.05}))
    assert (clip["penalty-0.1"], clip["clip"], clip["clip-alone"]) == ("undecided", "yes", "yes")
    assert clip["pessimism"] == "yes"  # against neither
    nothing = verdicts(values({}))
    assert nothing.pop("negligible") == "yes"
    assert set(nothing.values()) == {"undecided"}


def test_the_effect_is_paired_and_of_units_that_both_arms_played() -> None:
    found = values({(0.1, True): 0.05})
    effect = ARMS.effect(found, REWARD, (0.1, True), (0.0, True))
    assert effect.value == pytest.approx(0.05, abs=0.001)
    assert effect.high - effect.low < 0.01  # the seeds' own noise (.2) is not in it
    found["o2pl-penalty-0-clip"][5:] = np.nan
    fewer = ARMS.effect(found, REWARD, (0.1, True), (0.0, True))
    assert fewer.method == "bootstrap over 5 seeds"
    assert fewer.value == pytest.approx(0.05, abs=0.001)
    del found["o2pl-penalty-0-clip"]
    assert np.isnan(ARMS.effect(found, REWARD, (0.1, True), (0.0, True)).value)
    assert verdicts(found)["penalty-0.1"] == "undecided"
    assert ARMS.claims("toy/o2pl", {"o2pl": NOISE}, REWARD) == []  # rows from before there were arms


def test_of_regret_the_ratio_counts() -> None:
    half = {name: 10 + each for name, each in values({}).items()}
    half["o2pl"] = half["o2pl-penalty-0-clip"] / 2
    claims = ARMS.claims("toy/o2pl", half, times_less("regret", "seeds", negligible=0.1), " here")
    found = {claim.id.removeprefix("toy/o2pl-"): claim for claim in claims}
    assert found["penalty-0.1"].measured.value == pytest.approx(2.0)
    assert found["penalty-0.1"].verdict == "our own question: yes"
    assert found["negligible"].verdict == "our own question: no"
    assert "by less than 10%" in found["negligible"].claim
    assert found["penalty-0.1"].claim == (
        "The penalty helps O2PL here: regret without over regret with, λ = 0.1 against λ = 0."
    )


def test_a_ratio_is_of_the_seeds_that_both_played() -> None:
    """Regret is twice as high without the penalty on every seed, and a hundred times as high on those not played."""
    own = np.where(np.arange(10) < 6, 1.0, 100.0) * np.linspace(1, 2, 10)
    other = np.where(np.arange(10) < 6, 2 * own, np.nan)
    effect = ARMS.effect(
        {"o2pl": own, "o2pl-penalty-0-clip": other}, times_less("regret", "seeds", 0.1), (0.1, True), (0.0, True)
    )
    assert effect.value == pytest.approx(2.0)


def test_rows_are_aligned_by_seed() -> None:
    rows = pa.Table.from_pylist(
        [
            {"world": "w", "learner": learner, "seed": seed, "round": at, "regret": 10.0 * seed + at}
            for learner, seeds in (("o2pl", (0, 2, 3)), ("arm", (3, 2)))
            for seed in seeds
            for at in (1, 2)
        ]
    )
    found = by_seed(rows, "regret")
    np.testing.assert_array_equal(found["w", "o2pl"], [2, 22, 32])
    np.testing.assert_array_equal(found["w", "arm"], [np.nan, 22, 32])


def test_the_figure_has_a_panel_for_each_learner() -> None:
    other = LearnerArms("book", "As printed", penalty=1.0)
    figure = figure_of_arms([(ARMS, values({})), (other, values({}, other))], "mean reward", "Penalty and clip")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["O2PL", "As printed"]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["0", "0.1", "1"]


def test_the_figure_of_effects_shows_what_the_claims_measure() -> None:
    found = values({(0.1, True): 0.05})
    figure = figure_of_arms([(ARMS, found)], "gain", "Penalty and clip", measure=REWARD)
    with_clip = figure.axes[0].containers[0][0]
    effect = ARMS.effect(found, REWARD, (0.1, True), (0.0, False))
    assert with_clip.get_ydata()[1] == pytest.approx(effect.value)
    lower, upper = figure.axes[0].containers[0][1][0].get_ydata()[1], figure.axes[0].containers[0][1][1].get_ydata()[1]
    assert (lower, upper) == pytest.approx((effect.low, effect.high))
