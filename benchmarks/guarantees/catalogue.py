"""The catalogue of hostile worlds, and those in which there is something to find."""

from __future__ import annotations

import numpy as np

from benchmarks.guarantees.controlling import ControlledWorld
from benchmarks.guarantees.guarding import GuardedWorld
from benchmarks.guarantees.lists import ListWorld
from benchmarks.guarantees.worlds import (
    Table,
    World,
    always,
    by_action,
    excluding,
    exclusive,
    failing,
    graded,
    late_zeros,
    linear,
    products,
    repeated,
    signed,
    softmax,
)

_FLAT = products(4)
_K3 = always(0.6, 0.3, 0.1)
_RARELY: Table = lambda x: np.where(x[:, :1] > 0, [[0.98, 0.02]], [[0.9, 0.1]])  # noqa: E731  # a table like the others, in one line

# ruff: noqa: E501
AnyWorld = World | ListWorld | GuardedWorld | ControlledWorld
WORLDS: tuple[AnyWorld, ...] = (
    World("uniform logger, nothing matters", "binary rewards", 500, 3, by_action(0.3, 0.3, 0.3), always(1, 1, 1), softmax(3, 1.0, 1), doors=("from_incumbent", "safe_to_deploy", "propensity test", "metrics, five", "control group", "control group, any time")),
    World("softmax logger, nothing matters", "binary rewards", 1000, 3, linear(3, 2, 0.0, 0.2), softmax(3, 1.0, 3, 0.1), softmax(3, 1.0, 4)),
    World("wrong reward model", "rewards depend on a product of columns, no action matters", 1500, 4, _FLAT, softmax(4, 1.5, 5, 0.05), softmax(4, 2.0, 6), doors=("from_incumbent", "from_incumbent, given")),
    World("wrong reward model, more rows", "the same", 6000, 4, _FLAT, softmax(4, 1.5, 5, 0.05), softmax(4, 2.0, 6), doors=("switch-dr", "dr-shrinkage")),
    World("wrong model, graded rewards", "the same, rewards between", 800, 4, _FLAT, softmax(4, 1.0, 7, 0.1), softmax(4, 1.0, 8), draw=graded, doors=("quantiles", "metrics, five")),
    World("a bad action is hardly explored", "its propensity is .0005, it is worse by .3", 2000, 2, by_action(0.5, 0.5, 0.2), always(0.5, 0.4995, 0.0005), always(0.1, 0.1, 0.8), doors=("from_incumbent", "from_incumbent, given")),
    World("a bad action is hardly explored, more rows", "the same", 10000, 2, by_action(0.5, 0.5, 0.2), always(0.5, 0.4995, 0.0005), always(0.1, 0.1, 0.8)),
    World("it gives up what was hardly tried", "the other action has 18 of 300 rows, of which few earn anything", 300, 1, by_action(0.05, 0.05), _RARELY, always(1, 0), doors=("from_incumbent", "from_incumbent, given", "safe_to_deploy", "metrics, five")),
    World("it gives up what was hardly tried, more rows", "the same, 1 % of rows earn", 1500, 1, by_action(0.01, 0.01), _RARELY, always(1, 0), doors=("from_incumbent",)),
    World("it gives up what hardly ever fails", "the same, 5 % of rows earn nothing", 300, 1, by_action(0.95, 0.95), _RARELY, always(1, 0), doors=("from_incumbent",)),
    World("a bad action is never explored somewhere", "propensity 0 where x0 > 1, worth .1 there", 2000, 2,
          lambda x: np.where((x[:, :1] > 1) & (np.arange(3) == 2), 0.0, 0.55 * np.ones((len(x), 3))),
          lambda x: np.where(x[:, :1] > 1, [[0.5, 0.5, 0.0]], [[0.3, 0.3, 0.4]]), always(0, 0, 1)),
    World("hardly explored where it is bad", "propensity .001 where x0 > .5", 3000, 3,
          lambda x: np.where((x[:, :1] > 0.5) & (np.arange(3) == 1), 0.1, 0.55 * np.ones((len(x), 3))),
          lambda x: np.where(x[:, :1] > 0.5, [[0.6, 0.001, 0.399]], [[0.3, 0.4, 0.3]]), always(0, 1, 0), doors=("from_incumbent", "from_incumbent, given")),
    World("rare rewards", ".3 % of rows, three actions", 200, 2, by_action(0.003, 0.003, 0.003), always(1, 1, 1), always(0.1, 0.2, 0.7), baseline=always(0.7, 0.2, 0.1)),
    World("rare rewards, more rows", ".3 % of rows", 3000, 2, by_action(0.003, 0.003, 0.003), always(1, 1, 1), always(0.1, 0.2, 0.7), baseline=always(0.7, 0.2, 0.1), doors=("metrics, five", "control group", "control group, any time")),
    World("rare losses", ".3 % of rows", 200, 2, by_action(0.997, 0.997, 0.997), always(1, 1, 1), always(0.1, 0.2, 0.7)),
    World("rare losses, of the policy only", "its action loses .6 %", 400, 2, by_action(0.999, 0.999, 0.994), _K3, always(0, 0, 1)),
    World("losses are rare and total", "rewards are near .9, and 0 in .3 % of rows", 400, 2, by_action(0.9, 0.9, 0.9), always(1, 1, 1), always(0.1, 0.2, 0.7), draw=failing(0.003), doors=("from_incumbent", "control group", "quantiles")),
    World("losses are rare and total, of the policy only", "its action earns more, but nothing in .6 % of rows", 400, 2, by_action(0.9, 0.9, 0.8994), always(1, 1, 1), always(0, 0, 1), draw=failing(0.006, 0.8999), doors=("from_incumbent",)),
    World("rewards are all 1", "", 300, 2, by_action(1.0, 1.0, 1.0), _K3, always(0.1, 0.3, 0.6)),
    World("rewards are all 0", "", 300, 2, by_action(0.0, 0.0, 0.0), _K3, always(0.1, 0.3, 0.6)),
    World("an effective sample size of 5", "sharp logger and policy", 400, 5, linear(5, 9, 0.0), softmax(5, 1.5, 10, 0.02), softmax(5, 6.0, 11)),
    World("heavy weights", "softmax policies without a floor", 1000, 5, linear(4, 12, 0.0), softmax(4, 1.2, 13), softmax(4, 1.2, 14), doors=("from_incumbent", "from_incumbent, given")),
    World("heavy weights, good surprises rare", "", 2000, 5, lambda x: np.repeat(np.where(x[:, :1] > 1.5, 0.9, 0.05), 4, axis=1), softmax(4, 1.2, 13), softmax(4, 1.2, 14), doors=("from_incumbent", "from_incumbent, given")),
    World("few rows", "40 rows", 40, 2, by_action(0.4, 0.4), always(1, 1), always(0.2, 0.8)),
    World("many actions", "50 actions, 2,000 rows", 2000, 5, linear(50, 15, 0.0, 0.3), softmax(50, 0.5, 16, 0.5), softmax(50, 1.0, 17)),
    World("skewed rewards", "revenue: a fifth of rows earn, few of them much", 1500, 3, by_action(0.02, 0.02, 0.02), always(1, 1, 1), softmax(3, 1.0, 1),
          draw=lambda g, p: (g.random(len(p)) < 0.2) * g.beta(0.5, 0.5 * (0.2 / p - 1)), doors=("quantiles", "control group")),
    World("nearly the same policy", "differs in 2 % of contexts", 2000, 3, by_action(0.4, 0.4, 0.4), _K3, lambda x: np.where(x[:, :1] > 2, [[0.0, 0.0, 1.0]], [[0.6, 0.3, 0.1]])),
    World("two policies, common noise", "neither is the logger", 1000, 3, linear(3, 18, 0.0), always(1, 1, 1), softmax(3, 1.0, 19), baseline=softmax(3, 1.0, 20)),
    World("worse by .05", "the policy is worse", 2000, 3, by_action(0.5, 0.45), always(1, 1), always(0.0, 1.0), baseline=always(1.0, 0.0), doors=("safe_to_deploy",)),
    World("unknown reward range", "nothing matters", 800, 3, by_action(0.3, 0.3, 0.3), _K3, softmax(3, 1.0, 1), reward_range=None),
    World("every row twice", "nothing matters", 1000, 3, by_action(0.3, 0.3, 0.3), _K3, softmax(3, 1.0, 1), spoil=repeated(2)),
    World("every row four times", "nothing matters", 500, 3, by_action(0.3, 0.3, 0.3), _K3, softmax(3, 1.0, 1), spoil=repeated(4)),
    World("1s at once, 0s 300 rows late", "nothing matters; the log is cut before the last 0s arrive", 1500, 3, by_action(0.3, 0.3, 0.3), _K3, softmax(3, 1.0, 1), spoil=late_zeros(300)),
    World("deterministic log", "each context has one action, all propensities are 1", 1500, 2, lambda x: np.where(np.arange(2) == 1, 0.3, 0.55 * np.ones((len(x), 2))), signed(2), lambda x: signed(2)(-x), doors=("from_incumbent", "from_incumbent, given", "safe_to_deploy")),
    World("many rows, wrong model", "rewards depend on a product of columns, which no regression sees", 10000, 4, products(4, 0.3, 0.7), softmax(4, 1.5, 5, 0.02), lambda x: signed(4, 0.97)(x * x[:, -1:]), doors=("switch-dr", "dr-shrinkage")),
    World("better by .10, then worse by .05", "better in the first 1,000 rows, worse in the 6,500 after", 7500, 2, by_action(0.4, 0.5), always(1, 1), always(0, 1), baseline=always(1, 0),
          change=1000, later=(by_action(0.5, 0.45), always(1, 1)), doors=("evaluate, difference", "evaluate, any time", "candidates", "safe_to_deploy"), only=True),
    World("the incumbent is not linear", "it chooses by the sign of x0 x1; whatever is linear is worse", 3000, 2, exclusive(0.3, 0.7), lambda x: 0.8 * exclusive(0.0, 1.0)(x) + 0.1, softmax(2, 1.0, 30), doors=("from_incumbent", "from_incumbent, given")),
    World("an incumbent without a floor", "a sharp softmax of the right scores", 2000, 3, linear(3, 31, 0.3), softmax(3, 1.5, 31), softmax(3, 1.0, 32), doors=("from_incumbent", "from_incumbent, given")),
    World("rare harm where the logger hardly goes", "the other action earns .05 more, and .4 less where x0 > 1.2", 3000, 2, lambda x: np.stack([np.full(len(x), 0.5), np.where(x[:, 0] > 1.2, 0.1, 0.55)], axis=1), lambda x: np.where(x[:, :1] > 1.2, [[0.998, 0.002]], [[0.7, 0.3]]), always(0, 1), doors=("from_incumbent", "from_incumbent, given", "safe_to_deploy")),
    World("exact propensities, 5 actions", "20 columns", 500, 20, linear(5, 33, 0.2), softmax(5, 0.5, 34, 0.1), always(1, 1, 1, 1, 1), doors=("propensity test", "propensity test, ten looks")),
    World("exact propensities, 50 actions", "30 columns", 2000, 30, linear(50, 35, 0.2), softmax(50, 0.4, 36, 0.2), always(*[1] * 50), doors=("propensity test", "evaluate, difference"), only=True),
    World("exact propensities, an action excluded", "one of 5 in every row, any of them; 20 columns", 1000, 20, linear(5, 33, 0.0, 0.3), excluding(5, softmax(5, 0.5, 34, 0.1)), excluding(5, softmax(5, 0.5, 41)), doors=("propensity test", "propensity test, ten looks", "evaluate, difference", "evaluate, any time"), only=True),
    World("the logger changes, rewards are seasonal", "another softmax and other rewards after half of the rows", 1500, 20, linear(5, 37, 0.0, 0.3), softmax(5, 0.5, 38, 0.1), softmax(5, 0.5, 39), change=750, later=(linear(5, 37, 0.0, 0.6), softmax(5, 0.7, 40, 0.1)), doors=("propensity test", "propensity test, ten looks", "evaluate, difference", "evaluate, any time"), only=True),
    ListWorld("lists, rewards of a few per cent", "clicks in 1 to 4 % of lists' slots", 400, (0.01, 0.02, 0.03, 0.05), 0.0, 0.7),
    ListWorld("lists, nothing matters", "all items alike", 400, (0.2, 0.2, 0.2, 0.2), 0.5, -0.5),
    GuardedWorld("as good as the baseline, low rewards late", "graded rewards; those below .3 told eight minutes later", 1500, 0.3),
    ControlledWorld("A/A, daily looks, users who return", "users differ and return on two weeks' days; half of them in the control group", 1050, 14, 0.5, 0.5, users=30, spread=0.3),
    ControlledWorld("A/A, daily looks, few clicks", "2 % of the events are clicked, 10 % are in the control group, days differ", 2100, 14, 0.1, 0.02, spread=0.02),
    ControlledWorld("A/A, daily looks, reward and three metrics", "all the same; a tenth in the control group", 1050, 14, 0.1, 0.3, users=50, spread=0.2, metrics=3),
    ControlledWorld("control group, a gain of .1, daily looks", "a fifth in the control group", 2100, 14, 0.2, 0.3, gain=0.1, users=100, spread=0.1),
)  # fmt: skip

# Worlds with a true gain of three standard errors of DR.
POWER: tuple[World, ...] = (
    World("power: uniform logger", "", 2000, 3, by_action(0.30, 0.37, 0.30), always(1, 1, 1), always(0, 1, 0)),
    World("power: softmax logger", "", 600, 3, linear(3, 21, 0.2), softmax(3, 0.7, 22, 0.1), softmax(3, 0.7, 21)),
    World("power: softmax logger, more rows", "", 1500, 3, linear(3, 21, 0.2), softmax(3, 0.7, 22, 0.1), softmax(3, 0.5, 21)),
    World("power: many rows", "", 20000, 3, by_action(0.05, 0.061, 0.05), always(1, 1, 1), always(0, 1, 0)),
    World("power: two policies", "", 3000, 3, by_action(0.4, 0.46), always(1, 1), always(0.0, 1.0), baseline=always(1.0, 0.0)),
    World("power: something to learn", "", 2000, 3, linear(3, 21, 0.3), softmax(3, 0.3, 22, 0.1), softmax(3, 2.0, 21), doors=("from_incumbent",)),
)  # fmt: skip


def named(name: str) -> AnyWorld:
    return next(one for one in (*WORLDS, *POWER) if one.name == name)
