"""Every estimator against a plain loop, fed in pieces, on a world whose answer is known, and on bad input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.measure import Skipped
from benchmarks.peers import Child
from hypothesis import given, settings
from hypothesis import strategies as st

from o2pl.data.interactions import BLOCK
from o2pl.errors import InvalidInput
from o2pl.evaluation.estimators import (
    ESTIMATORS,
    EstimatorInput,
    EstimatorSettings,
    Stream,
    balanced_estimator_weights,
    estimate,
    estimator_input,
    estimator_rows,
    estimator_value,
)
from o2pl.objectives import Control, PessimisticLog, Phi
from o2pl.objectives.weights import policy_weights
from o2pl.theory.inequality import refutes

TUNING = EstimatorSettings(
    clip=2.5, switch=1.7, shrinkage=3.0, baseline=0.4, penalty=Phi(2.5, 300, 3.0, 0.5, 0.7), span=2.0
)


def some_columns(n: int = 300, seed: int = 0) -> EstimatorInput:
    g = np.random.default_rng(seed)
    weights = g.exponential(size=n) * (g.random(n) < 0.8)
    return EstimatorInput(g.normal(1, 2, n), weights, g.normal(1, 1, n), g.normal(1, 1, n), g.exponential(size=n))


# -- slow references: loops over rows


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def by_row(value: Callable[..., float]) -> Callable[[EstimatorInput], float]:
    return lambda c: mean([value(*row) for row in zip(*c[:5], strict=True)])


def slow_pessimistic(c: EstimatorInput) -> float:
    cut = [min(w, 2.5) for w in c.weights]
    value = mean([v + k * (r - m) for k, r, m, v in zip(cut, c.rewards, c.played, c.expected, strict=True)])
    sigma = math.sqrt(mean([(k - 1) ** 2 for k in cut]))
    p, alpha, t, log = 0.5, 2.5, 300, 3.0
    penalty = (alpha / t) ** (2 / (2 + p)) + (sigma ** (1 - p / 2) + sigma * math.sqrt(log)) / math.sqrt(t)
    return value - 2.0 * 0.7 * (penalty + alpha * log / t)


def slow_ratio(c: EstimatorInput, model: bool) -> float:
    top = math.fsum(w * (r - model * m) for r, w, m in zip(c.rewards, c.weights, c.played, strict=True))
    return model * mean(list(c.expected)) + top / math.fsum(c.weights)


REFERENCES: dict[str, Callable[[EstimatorInput], float]] = {
    "ips": by_row(lambda r, w, m, v, b: w * r),
    "snips": lambda c: slow_ratio(c, False),
    "clipped": by_row(lambda r, w, m, v, b: (w if w < 2.5 else 2.5) * r),
    "balanced": by_row(lambda r, w, m, v, b: b * r),
    "dm": by_row(lambda r, w, m, v, b: v),
    "dr": by_row(lambda r, w, m, v, b: v + w * (r - m)),
    "sndr": lambda c: slow_ratio(c, True),
    "switch-dr": by_row(lambda r, w, m, v, b: v + (w * (r - m) if w <= 1.7 else 0)),
    "dr-shrinkage": by_row(lambda r, w, m, v, b: v + 3.0 * w / (w * w + 3.0) * (r - m)),
    "pessimistic": slow_pessimistic,
}


def test_every_estimator_has_a_reference() -> None:
    assert set(REFERENCES) == set(ESTIMATORS)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("seed", [0, 1])
def test_columns_agree_with_a_loop(name: str, seed: int) -> None:
    columns = some_columns(seed=seed)
    assert estimate(name, columns, TUNING).value == pytest.approx(REFERENCES[name](columns), rel=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_error_is_that_of_leaving_rows_out(name: str) -> None:
    """The jackknife knows nothing of gradients. Exact for means; for smooth functions of means up to O(1/n)."""
    columns = some_columns(400, 2)
    n = len(columns.rewards)
    without = np.array([REFERENCES[name](EstimatorInput(*(np.delete(c, s) for c in columns[:5]))) for s in range(n)])
    jackknife = math.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    smooth = name in ("snips", "sndr", "pessimistic")
    assert estimate(name, columns, TUNING).error == pytest.approx(jackknife, rel=0.02 if smooth else 1e-9)
    values = estimator_rows(name, columns, TUNING)
    assert values.std(ddof=1) / math.sqrt(n) == pytest.approx(estimate(name, columns, TUNING).error, rel=1e-9)
    assert values.mean() == pytest.approx(estimate(name, columns, TUNING).value, rel=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_row_weights_are_rows_that_come_again(name: str) -> None:
    """The value is that of a log in which each row stands as often as it counts; the error is the jackknife's."""
    columns, g = some_columns(300, 3), np.random.default_rng(4)
    times = g.integers(1, 5, 300)
    weighted = columns._replace(row_weights=times * 0.7)  # only ratios matter
    repeated = EstimatorInput(*(np.repeat(c, times) for c in columns[:5]))
    found = estimate(name, weighted, TUNING)
    expected = estimate(name, repeated, TUNING)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert estimator_value(name, weighted, TUNING) == pytest.approx(expected.value, rel=1e-12)
    assert found.error > expected.error  # the same rows again are no news
    without = [
        estimator_value(name, EstimatorInput(*(None if c is None else np.delete(c, s) for c in weighted)), TUNING)
        for s in range(300)
    ]
    jackknife = math.sqrt(299 / 300 * ((np.array(without) - np.mean(without)) ** 2).sum())
    assert found.error == pytest.approx(jackknife, rel=0.03)
    values = estimator_rows(name, weighted, TUNING)
    assert values.mean() == pytest.approx(found.value, rel=1e-9)
    assert values.std(ddof=1) / math.sqrt(300) == pytest.approx(found.error, rel=1e-9)


def test_rows_with_and_without_weights_do_not_mix() -> None:
    columns = some_columns()
    weighted = columns._replace(row_weights=np.full(300, 2.0))
    assert estimate("dr", weighted).value == pytest.approx(estimate("dr", columns).value, rel=1e-12)
    with pytest.raises(InvalidInput, match="row_weights: found rows with and without"):
        Stream("dr").add(columns).add(weighted)
    with pytest.raises(InvalidInput, match="merge: found rows with and without row_weights"):
        Stream("dr").add(columns).merge(Stream("dr").add(weighted))
    assert Stream("dr").merge(Stream("dr").add(weighted)).estimate() == Stream("dr").add(weighted).estimate()


@pytest.mark.parametrize("name", ESTIMATORS)
@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 300), max_size=6), order=st.randoms(use_true_random=False))
def test_pieces_in_any_order_agree_with_columns(name: str, cuts: list[int], order: object) -> None:
    columns = some_columns()
    edges = sorted([0, *cuts, 300])
    streams = [Stream(name, TUNING).add(columns.rows(slice(a, b))) for a, b in itertools.pairwise(edges)]
    order.shuffle(streams)
    first, *others = streams
    for other in others:
        first.merge(other)
    whole = estimate(name, columns, TUNING)
    got = first.estimate()
    assert got.n == whole.n
    assert got.value == pytest.approx(whole.value, rel=1e-12)
    assert got.error == pytest.approx(whole.error, rel=1e-12)


def test_more_rows_than_a_block_and_rewards_far_from_zero() -> None:
    n = 2 * BLOCK + 17
    g = np.random.default_rng(0)
    columns = EstimatorInput(1e8 + g.normal(size=n), np.ones(n))
    got = estimate("ips", columns)
    assert got.value == pytest.approx(math.fsum(columns.rewards) / n, rel=1e-13)
    assert got.error == pytest.approx(np.std(columns.rewards - 1e8, ddof=1) / math.sqrt(n), rel=1e-6)
    stream = Stream("ips", EstimatorSettings.theory(n))
    for start in range(0, n, 1000):
        stream.add(columns.rows(slice(start, start + 1000)))
    assert stream.estimate() == pytest.approx(got, rel=1e-12)


# -- weights


def test_weights_over_the_mixture_of_loggers() -> None:
    g = np.random.default_rng(0)
    loggers, by_logger, likely = g.integers(3, size=50), g.random((50, 3)), g.random(50)
    shares = [np.mean(loggers == j) for j in range(3)]
    slow = [likely[s] / sum(shares[j] * by_logger[s, j] for j in range(3)) for s in range(50)]
    assert balanced_estimator_weights(likely, by_logger, loggers) == pytest.approx(slow, rel=1e-12)


def test_weights_of_actions_that_are_never_taken_are_0() -> None:
    assert policy_weights(np.array([0.0, 0.5]), np.array([0.5, 0.25])) == pytest.approx([0.0, 2.0])


def test_columns_from_tables() -> None:
    g = np.random.default_rng(0)
    actions, q, pi, m, r = (
        g.integers(3, size=20),
        g.random(20),
        g.dirichlet(np.ones(3), 20),
        g.random((20, 3)),
        g.random(20),
    )
    found = estimator_input(r, actions, q, pi, m)
    for s in range(20):
        value = sum(pi[s, a] * m[s, a] for a in range(3))
        row = found.rows(slice(s, s + 1))
        assert row[:4] == pytest.approx((r[s], pi[s, actions[s]] / q[s], m[s, actions[s]], value))
    assert estimator_input(r, actions, q, pi).played is None


# -- the value that the learner itself optimises


def test_the_pessimistic_value_is_the_learners_objective() -> None:
    """V of `PessimisticLog` is relative to the log's mean loss; the value is absolute, and in rewards."""
    g = np.random.default_rng(0)
    n, low, span, baseline = 200, -1.0, 3.0, -0.6
    losses, q, log_prob = -g.random(n), g.uniform(0.1, 1, n), np.log(g.dirichlet(np.ones(3), n))
    actions = g.integers(3, size=n)
    played = log_prob[np.arange(n), actions]
    penalty = Phi(3.0, n, 2.0)
    rewards, weights = low - span * losses, policy_weights(np.exp(played), q)
    tuning = EstimatorSettings(clip=3.0, baseline=low - span * baseline, penalty=penalty, span=span)

    log = PessimisticLog(actions, losses, q, 3.0, penalty, baseline)
    value = log.value(log.partial(log_prob)[0]) + losses.mean()
    assert estimate("pessimistic", EstimatorInput(rewards, weights), tuning).value == pytest.approx(low - span * value)

    control = Control(-g.random((3, n)), -g.random(n))
    log = replace(log, control=control)
    value = log.value(log.partial(log_prob)[0]) + (losses - control.played).mean() + baseline
    expected = (np.exp(log_prob) * control.by_action.T).sum(axis=1)
    columns = EstimatorInput(rewards, weights, low - span * control.played, low - span * expected)
    assert estimate("pessimistic", columns, tuning).value == pytest.approx(low - span * value)


# -- a world whose answer is known

POLICY, LOGGER = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])
MEANS, MODEL = np.array([[0.9, 0.3, 0.5], [0.2, 0.6, 0.7]]), np.array([[0.7, 0.2, 0.4], [0.3, 0.5, 0.5]])


def draw(n: int, seed: int) -> EstimatorInput:
    g = np.random.default_rng(seed)
    x = g.integers(2, size=n)
    a = (LOGGER[x].cumsum(axis=1) < g.random(n)[:, None]).sum(axis=1)
    r = (g.random(n) < MEANS[x, a]) * 1.0
    return EstimatorInput(r, POLICY[x, a] / LOGGER[x, a], MODEL[x, a], (POLICY * MODEL).sum(axis=1)[x])


@pytest.mark.parametrize("name", ["ips", "snips", "dr", "sndr"])
def test_intervals_cover_and_estimates_are_centred(name: str) -> None:
    """500 logs of 400 rows. Level of either test 1e-3; a self-normalised bias of O(1/n) is not visible."""
    truth = float((POLICY * MEANS).sum(axis=1).mean())
    found = [estimate(name, draw(400, seed), EstimatorSettings()) for seed in range(500)]
    off = np.array([one.value - truth for one in found])
    assert abs(off.mean()) < 3.29 * off.std(ddof=1) / math.sqrt(len(off))
    missed = sum(abs(o) > 1.96 * one.error for o, one in zip(off, found, strict=True))
    assert not refutes(missed, 500, 0.05, 1e-3)


def test_a_fair_model_takes_out_noise() -> None:
    columns = draw(2000, 0)
    assert estimate("dr", columns).error < 0.9 * estimate("ips", columns).error


# -- bad input


def test_one_row_has_no_known_error() -> None:
    assert estimate("ips", EstimatorInput(np.array([0.5]), np.array([2.0]))) == (1.0, math.inf, 1, 0.0)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_too_large_for_a_number(name: str) -> None:
    columns = some_columns()
    columns.weights[170] = np.inf
    if name in ("ips", "snips", "dr", "sndr"):
        stream = Stream(name, TUNING)
        with pytest.raises(InvalidInput, match="weight, row 170: the importance weight overflowed"):
            stream.add(columns)
        assert stream.n == 0
    else:
        assert math.isfinite(estimate(name, columns, TUNING).value)


def test_an_infinite_weight_is_shrunk_to_nothing_and_only_then() -> None:
    columns = EstimatorInput(np.ones(2), np.array([np.inf, 1.0]), np.zeros(2), np.zeros(2))
    assert estimate("dr-shrinkage", columns, EstimatorSettings(shrinkage=3.0)).value == pytest.approx(3 / 8)
    with pytest.raises(InvalidInput, match="overflowed"):
        estimate("dr-shrinkage", columns, EstimatorSettings())


def test_no_weight_at_all() -> None:
    columns = EstimatorInput(np.ones(5), np.zeros(5))
    assert estimate("ips", columns).value == 0
    with pytest.raises(InvalidInput, match="no action that the policy takes"):
        estimate("snips", columns)


def test_what_cannot_be_computed_is_said() -> None:
    columns = EstimatorInput(np.ones(5), np.ones(5))
    with pytest.raises(InvalidInput, match="dr: found no column 'played'"):
        estimate("dr", columns)
    with pytest.raises(InvalidInput, match="penalty: found None"):
        estimate("pessimistic", columns)
    with pytest.raises(InvalidInput, match="estimator: found 'best', expected one of"):
        Stream("best")
    with pytest.raises(InvalidInput, match="no rows"):
        Stream("ips").estimate()
    with pytest.raises(InvalidInput, match="merge: found snips"):
        Stream("ips").merge(Stream("snips"))
    with pytest.raises(InvalidInput, match="merge: found clipped"):
        Stream("clipped").merge(Stream("clipped", EstimatorSettings(clip=3.0)))


def test_every_estimator_is_obps_on_the_same_inputs() -> None:
    """The real OBP, in the peers' environment; skipped where that has not been made (`make bench` makes it)."""
    g = np.random.default_rng(0)
    n, k = 500, 7
    tables = {
        "reward": g.random(n),
        "action": g.integers(k, size=n),
        "pscore": g.uniform(0.02, 0.9, n),
        "action_dist": g.dirichlet(np.ones(k), n),
        "predicted": g.random((n, k)),
    }
    levels = EstimatorSettings(clip=2.5, switch=1.7, shrinkage=3.0)
    try:
        with Child("obp", **tables) as child:
            wanted = {"clip": levels.clip, "switch": levels.switch, "shrinkage": levels.shrinkage}
            theirs = child.ask("estimates", settings=wanted)["values"]
    except Skipped as reason:
        pytest.skip(str(reason))
    columns = estimator_input(*tables.values())
    assert sorted(theirs) == ["clipped", "dm", "dr", "dr-shrinkage", "ips", "sndr", "snips", "switch-dr"]
    for name, value in theirs.items():
        assert estimate(name, columns, levels).value == pytest.approx(value, rel=1e-10, abs=1e-10), name


# -- one more row


WEIGHTS = {
    "clipped": lambda w: min(w, 2.5),
    "switch-dr": lambda w: w if w <= 1.7 else 0.0,
    "dr-shrinkage": lambda w: 3.0 * w / (w * w + 3.0),
}


@pytest.mark.parametrize("name", [name for name, each in ESTIMATORS.items() if each.weights is not None])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_more_row_is_the_same_in_pieces(name: str, weighted: bool) -> None:
    columns = some_columns()
    rows = np.random.default_rng(3).uniform(1, 4, 300) if weighted else np.ones(300)
    given = columns._replace(row_weights=rows) if weighted else columns
    raw = columns.balanced if name == "balanced" else columns.weights
    weights = np.array([WEIGHTS.get(name, lambda w: w)(w) for w in raw]) * rows / rows.mean()
    surprises = columns.rewards - columns.played
    modelled = np.abs(surprises).max() if name in ("dr", "sndr", "switch-dr", "dr-shrinkage") else None
    largest = np.ptp(columns.rewards) if modelled is None else modelled
    expected = weights @ weights / weights.sum() * largest / 300
    whole = Stream(name, TUNING).add(given).estimate()
    assert whole.one_more == pytest.approx(expected)
    pieces = Stream(name, TUNING).add(given.rows(slice(0, 70))).add(given.rows(slice(70, 90)))
    assert pieces.merge(Stream(name, TUNING).add(given.rows(slice(90, 300)))).estimate().one_more == pytest.approx(
        expected
    )


def test_the_model_alone_has_no_weights() -> None:
    assert estimate("dm", some_columns(), TUNING).one_more == 0
