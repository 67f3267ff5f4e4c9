from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from o2pl._core import acting_rows, draw, draw_one, softmax_in_place
from o2pl.data.contexts import offsets_of_equal_contexts
from o2pl.errors import InvalidInput
from o2pl.policies.sampling import (
    BY_EXCESS,
    CountBonus,
    UniformExploration,
    acting_among,
    acting_numbers,
    acting_parts,
    log_softmax,
    mix_uniform,
    predicted,
    sample_rows,
    sharpened_before_sampling,
)
from o2pl.protocols import Explored


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_mixing_is_the_same_for_numbers_arrays_and_rows(epsilon: float) -> None:
    probabilities = np.array([0.7, 0.3, 0.0])
    slow = [(1 - epsilon) * p + epsilon / 3 for p in (0.7, 0.3, 0.0)]
    np.testing.assert_allclose(mix_uniform(probabilities, epsilon, 1 / 3), slow, rtol=1e-15)
    np.testing.assert_allclose([mix_uniform(p, epsilon, 1 / 3) for p in probabilities], slow, rtol=1e-15)
    inside = np.empty(3)
    numbers = acting_numbers(np.ones(1), 1.0, Explored(epsilon, [], []))
    acting_rows(np.log(probabilities + 1e-300)[None], offsets_of_equal_contexts(1, 3), numbers, inside)
    np.testing.assert_allclose(inside, slow, rtol=1e-14, atol=1e-299)
    np.testing.assert_allclose(mix_uniform(probabilities, epsilon, 1 / np.array([1, 2, 4]))[2], epsilon / 4)


def test_a_mixture_is_never_above_1() -> None:
    above = np.nextafter(1.0, 2.0)
    assert mix_uniform(above, 0.0, 1.0) == 1


def test_inversion_skips_what_is_impossible_and_gives_the_rest_to_the_last() -> None:
    probabilities = np.array([0.0, 0.25, 0.0, 0.75 - 1e-9, 0.0])
    for uniform, action in ((0.0, 1), (0.2499, 1), (0.25, 3), (1 - 1e-12, 3)):
        assert draw_one(probabilities, uniform) == action


def test_sets_and_rows_are_drawn_alike() -> None:
    generator = np.random.default_rng(0)
    probabilities, uniforms = generator.dirichlet(np.ones(3), size=200), generator.random(200)
    actions, propensities = sample_rows(probabilities, uniforms)
    slow = (probabilities.cumsum(axis=1) <= uniforms[:, None]).sum(axis=1)
    np.testing.assert_array_equal(actions, slow)
    np.testing.assert_array_equal(propensities, probabilities[np.arange(200), slow])
    sets = draw(probabilities.reshape(-1), np.arange(0, 601, 3), uniforms)
    np.testing.assert_array_equal(sets[0], actions)
    np.testing.assert_array_equal(sets[1], propensities)


def test_softmax_within_sets_and_sharpening() -> None:
    scores, offsets = np.array([1.0, 3.0, -800.0, 800.0, 0.0]), np.array([0, 2, 5])
    found = np.exp(log_softmax(scores, offsets))
    assert found[0] == pytest.approx(1 / (1 + np.exp(2)))
    np.testing.assert_allclose(found[2:], [0, 1, 0], atol=1e-300)
    np.testing.assert_allclose(log_softmax(scores[None, :2])[0], np.log(found[:2]))
    softmax_in_place(scores[:2], 2.0)
    assert scores[0] == pytest.approx(1 / (1 + np.exp(4)))
    pi = np.array([[0.2, 0.8], [0.0, 1.0]])
    np.testing.assert_allclose(sharpened_before_sampling(pi, 1.0), pi)
    np.testing.assert_allclose(sharpened_before_sampling(pi, 3.0), [[0.008 / 0.52, 0.512 / 0.52], [0, 1]])


NONE = np.empty(0)
EXPLORED = {
    "nothing": Explored(0.0, NONE, NONE),
    "uniform": Explored(0.2, NONE, NONE),
    "a bonus": Explored(0.0, np.array([0.5, 0.0, -1.0]), NONE),
    "a share": Explored(0.3, NONE, np.array([0.7, 0.2, 0.1])),
    "both": Explored(0.3, np.array([0.5, 0.0, -1.0]), np.array([0.7, 0.2, 0.1])),
}


@pytest.mark.parametrize("name", EXPLORED)
@pytest.mark.parametrize("shares", [(1.0,), (0.6, 0.4)])
def test_acting_is_mixture_then_sharpening_then_exploring(name: str, shares: tuple[float, ...]) -> None:
    explored, sharpness = EXPLORED[name], 1.7
    scores = np.random.default_rng(0).normal(size=(len(shares), 4, 3))
    numbers = acting_numbers(np.array(shares), sharpness, explored)
    flat, out = scores.reshape(len(shares), -1), np.empty(12)
    acting_rows(flat, offsets_of_equal_contexts(4, 3), numbers, out)
    np.testing.assert_array_equal(flat, scores.reshape(len(shares), -1))
    for s in range(4):
        members = np.exp(scores[:, s]) / np.exp(scores[:, s]).sum(axis=1, keepdims=True)
        logits = sharpness * (np.log(np.array(shares) @ members) + (explored.bonus if len(explored.bonus) else 0))
        pi = np.exp(logits) / np.exp(logits).sum()
        share = explored.share if len(explored.share) else 1 / 3
        expected = (1 - explored.epsilon) * pi + explored.epsilon * share
        np.testing.assert_allclose(out[3 * s : 3 * s + 3], expected, rtol=1e-12)
        alone = np.empty(3)
        acting_rows(scores[:, s].copy(), offsets_of_equal_contexts(1, 3), numbers, alone)
        np.testing.assert_array_equal(alone, out[3 * s : 3 * s + 3])


# competing or not, τ, level and slope of three members
PREDICTING = np.array([[1, 0.3, 0, 1], [0, -0.8, 0, 1], [1, 0.0, 0.4, 0.7]])


def slow_log_odds(scores: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return logit Σ ρ m for one row of scores [3, K]: each member's softmax or logistic model, by loops."""
    mixed = np.zeros(scores.shape[1])
    for f, rho, (competing, tau, level, slope) in zip(scores, shares, PREDICTING, strict=True):
        for a in range(len(f)):
            if competing:
                pi = np.exp(f[a]) / np.exp(f).sum()
                z = np.log(pi / (1 - pi)) - tau
            else:
                z = f[a] + tau
            mixed[a] += rho / (1 + np.exp(-(level + slope * z)))
    return np.log(mixed / (1 - mixed))


@pytest.mark.parametrize("K", [2, 3, 9, 17])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_what_is_less_certain_than_the_best_is_tried(K: int, epsilon: float) -> None:
    generator = np.random.default_rng(K)
    shares, n = np.array([0.5, 0.3, 0.2]), 40
    scores, variance = generator.normal(size=(3, n, K)), generator.exponential(size=(n, K)) ** 2
    optimism, bonus = generator.exponential(size=(n, K)) / 4, generator.normal(size=K) / 4
    numbers = acting_numbers(shares, BY_EXCESS, Explored(epsilon, bonus, NONE), PREDICTING)
    out = np.empty((n, K))
    acting_rows(
        scores.reshape(3, -1),
        offsets_of_equal_contexts(n, K),
        numbers,
        out.reshape(-1),
        variance.reshape(-1),
        optimism.reshape(-1),
    )
    for s in range(n):
        u = slow_log_odds(scores[:, s], shares) + bonus + optimism[s]
        best = u.argmax()
        T = np.sqrt(np.maximum(variance[s] - variance[s, best], 0) + 0.05**2)
        q = scipy.stats.norm.cdf(-(u[best] - u) / T)
        odds = np.maximum(q / (1 - q), 1e-12)
        odds[best] = 1
        np.testing.assert_allclose(out[s], (1 - epsilon) * odds / odds.sum() + epsilon / K, rtol=1e-9)
        acting = acting_parts(numbers, 3, K)
        np.testing.assert_allclose(predicted(scores[:, s], acting).mixed, u - bonus - optimism[s], rtol=1e-10)


def test_predictions_that_are_almost_sure_stay_in_order() -> None:
    """Where 1 - π is far below rounding, log-odds still differ; beyond ±30 they do not."""
    scores = np.array([[40.0, 20.0, 0.0], [9.0, 8.0, -9.0], [0.0, 0.0, 0.0]])
    numbers = acting_numbers(np.array([1.0, 0, 0]), BY_EXCESS, Explored(0.0, NONE, NONE), PREDICTING)
    acting = acting_parts(numbers, 3, 3)
    np.testing.assert_allclose(predicted(scores, acting).mixed, [19.7, -20.3, -30], rtol=1e-6)
    out = np.empty(3)
    acting_rows(scores, offsets_of_equal_contexts(1, 3), numbers, out)
    np.testing.assert_allclose(out, [1, 1e-12, 1e-12], rtol=1e-9)


def test_predictions_belong_to_policies_that_act_by_them() -> None:
    shares, none = np.ones(3) / 3, Explored(0.0, NONE, NONE)
    for sharpness, predicting in ((BY_EXCESS, np.empty((0, 4))), (2.0, PREDICTING), (BY_EXCESS, PREDICTING[:2])):
        with pytest.raises(ValueError, match="predicting: expected four numbers of each member"):
            acting_numbers(shares, sharpness, none, predicting)


def test_uniform_exploration_is_a_share_of_every_action() -> None:
    assert UniformExploration(0.2).at(np.array([5, 0]), 0.5).epsilon == 0.2
    with pytest.raises(InvalidInput, match="exploration"):
        UniformExploration(1.5)


def test_a_count_bonus_is_for_actions_that_were_hardly_played() -> None:
    plays = np.array([0, 3, 8, 10_000, 1])
    found = CountBonus(2.0, 0.1).at(plays, 0.65)
    np.testing.assert_allclose(found.bonus, [1.4 * 5**0.75 * (1 - 2 / 5) / (n + 1) ** 0.5 for n in plays])
    np.testing.assert_array_equal(CountBonus().at(plays, 0.1).bonus, CountBonus().at(plays, 0.5).bonus)
    assert (found.epsilon, len(found.share)) == (0.1, 0)
    for few in ([4], [0, 7]):
        assert not CountBonus().at(np.array(few), 0.5).bonus.any()
    for setting in ("strength", "epsilon"):
        with pytest.raises(InvalidInput, match=f"{setting}: found -1"):
            CountBonus(**{setting: -1})


def test_among_many_actions_plays_without_a_reward_count_less() -> None:
    K, plays, rewards = 26, np.full(26, 13), np.arange(26.0)
    found = CountBonus().at(plays, 0.2, rewards).bonus
    counted = 13 * (rewards + 1) / (rewards + 1 + 8 * np.exp(-13 / 26))
    np.testing.assert_allclose(found, 0.8 * K**0.75 * (1 - 2 / K) / np.sqrt(counted + 1))
    assert found[0] > 1.4 * found[-1]
    assert (np.diff(found) < 0).all()
    # after many plays without a reward, the action is known to be a bad one
    late = CountBonus().at(np.full(K, 300), 0.2, np.zeros(K)).bonus
    np.testing.assert_allclose(late, 0.8 * CountBonus().at(np.full(K, 300), 0.2).bonus, rtol=1e-4)
    # up to ten actions, and where rewards are not counted, all plays count
    for k in (3, 10):
        few = np.arange(k)
        np.testing.assert_array_equal(CountBonus().at(few, 0.2, np.zeros(k)).bonus, CountBonus().at(few, 0.2).bonus)


def test_acting_numbers_are_taken_apart_again() -> None:
    shares, bonus, share = np.array([0.25, 0.75]), np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.5, 0.0])
    parts = acting_parts(acting_numbers(shares, 7.0, Explored(0.1, bonus, share)), 2, 3)
    assert (parts.sharpness, parts.epsilon) == (7.0, 0.1)
    np.testing.assert_array_equal(parts.weights, shares)
    np.testing.assert_array_equal(parts.bonus, bonus)
    np.testing.assert_array_equal(parts.share, share)
    none = acting_parts(acting_numbers(shares, 7.0, Explored(0.0, np.empty(0), np.empty(0))), 2, 3)
    np.testing.assert_array_equal(none.bonus, np.zeros(3))
    np.testing.assert_array_equal(none.share, np.full(3, 1 / 3))


@pytest.mark.parametrize("shared", [False, True])
def test_only_some_actions_may_be_played(shared: bool) -> None:
    """Mixture, bonus, sharpness and ε of those that are left, as if there were no others."""
    generator = np.random.default_rng(0)
    scores, allowed = generator.normal(size=(2, 5)), np.array([0, 3, 4])
    bonus, share = generator.normal(size=5), generator.dirichlet(np.ones(5)) if shared else np.empty(0)
    acting = acting_numbers(np.array([0.2, 0.8]), 3.0, Explored(0.1, bonus, share))
    pi = np.empty(3)
    acting_rows(scores[:, allowed].copy(), offsets_of_equal_contexts(1, 3), acting_among(acting, 2, allowed), pi)
    own = np.exp(scores[:, allowed]) / np.exp(scores[:, allowed]).sum(axis=1, keepdims=True)
    sharp = (np.array([0.2, 0.8]) @ own * np.exp(bonus[allowed])) ** 3
    mixed = share[allowed] / share[allowed].sum() if shared else 1 / 3
    np.testing.assert_allclose(pi, 0.9 * sharp / sharp.sum() + 0.1 * mixed, rtol=1e-12)
