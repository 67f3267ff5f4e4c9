"""Policies on held-out rows, learned without them, and what these say of each: see `incumbent`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.lazily import called_lazily
from o2pl.learners.targets import as_target, table_target
from o2pl.protocols import Floats, Ints

Probabilities = Callable[[Any], Floats]  # contexts -> [n, K]; flat for action sets
Learn = Callable[[Ints], Sequence[Probabilities]]
Kept = Callable[[str, Callable[[], Floats]], Floats]  # returns the cached result of a name, or computes it

_VALUE, _SURE = 9, 2.0  # columns of `evaluation.held_out`; standard errors
_OTHER = 2 * _VALUE  # column of the estimate for another fold's policy
_SHARES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)  # of uniform exploration
_NEAR = 0.02  # nats per row by which a clone may be less likely than what it clones


def computed_improvement_candidate(name: str, compute: Callable[[], Floats]) -> Floats:
    """Compute without a cache."""
    return compute()


def random_loss_for_improvement_candidates(losses: Floats, propensities: Floats) -> float:
    """Return the mean loss of an action drawn at random: Σ y/q / Σ 1/q (SNIPS)."""
    return float(np.average(losses, weights=1 / propensities))


def improvement_candidate_columns(
    learn: Learn, rows: Interactions, folds: int, seed: Any = None, kept: Kept = computed_improvement_candidate,
    incumbent: Floats | None = None,
) -> Floats:  # fmt: skip
    """Return what every row says of policies that were learned without the row's fold. [policies, 20, n]

    `learn(places)` learns from those rows and returns policies as functions of contexts. The columns are those of the
    value, those of the gain over the incumbent (its probabilities of all actions, if it did not make the log), the
    estimate for the policy learned without the fold before, and the log-likelihood of the row's action. `kept`: cache
    of earlier results.
    """
    n = len(rows)
    fold = np.random.default_rng(seed).permutation(n) % folds
    places = [np.flatnonzero(fold == k) for k in range(folds)]

    @cache
    def part(k: int) -> Any:
        numbers = called_lazily("o2pl.evaluation.evaluated_logs", "numeric_evaluated_log")(rows[places[k]])
        return called_lazily("o2pl.evaluation.held_out", "HeldOut")(numbers, 1 / folds)

    held: Floats = np.empty(0)
    for k in range(folds):
        own, after = places[k], (k + 1) % folds

        def found(k: int = k, own: Ints = own, after: int = after) -> Floats:
            known = None if incumbent is None else some_rows_of_improvement_candidates(incumbent, rows, own)
            against = None if known is None else table_target("incumbent", part(k).rows, known)
            policies = learn(np.flatnonzero(fold != k))
            mine = [
                _improvement_candidate_columns(part(k), policy, rows.contexts[own], against).ravel()
                for policy in policies
            ]
            next_to = [
                as_target(policy, part(after).rows, contexts=rows.contexts[places[after]]) for policy in policies
            ]
            return np.stack(
                [np.append(one, part(after).estimates(two)) for one, two in zip(mine, next_to, strict=True)]
            )

        values = kept(f"fold{k}", found)
        columns = values[:, : len(values[0]) - len(places[after])].reshape(len(values), -1, len(own))
        held = np.empty((len(values), columns.shape[1] + 1, n)) if not len(held) else held
        held[:, :_OTHER, own], held[:, -1, own] = columns[:, :_OTHER], columns[:, -1]
        held[:, _OTHER, places[after]] = values[:, -len(places[after]) :]
    return held


def _improvement_candidate_columns(part: Any, policy: Probabilities, contexts: Any, against: Any) -> Floats:
    target = as_target(policy, part.rows, contexts=contexts)
    value = part.values(target)
    gain = np.zeros_like(value) if against is None else part.values(target, against)
    played = np.concatenate([target.on(rows).played for rows in part.rows.blocks()])
    return np.concatenate([value, gain, np.log(np.maximum(played, 1e-300))[None]])


def some_rows_of_improvement_candidates(known: Floats, rows: Interactions, places: Ints) -> Floats:
    """Return the probabilities of these rows."""
    return np.asarray(rows.encoded.part(known, places))


class Verdict(NamedTuple):
    """The evidence in the log about a policy. Gains are over the incumbent."""

    deploy: bool  # is it better, with confidence?
    gain: float  # estimated on held-out rows
    lower: float  # lower bound, jointly valid for all candidates
    penalty: float  # λ of the policy, or another measure of its pessimism
    pessimistic: float = math.nan  # by which the best is chosen
    reason: str = ""  # why the log cannot tell, if it cannot
    said: str = ""  # the judgement as a sentence


def improvement_candidate_verdicts(
    held: Floats, pessimism: Sequence[float], confidence: float, rows: Interactions, known: bool = False
) -> tuple[Verdict, ...]:
    """Return the candidates' verdicts from their columns [candidates, 20, n]: jointly, by Bonferroni.

    known: gains are over a given incumbent, otherwise over the logger.
    """
    numbers = called_lazily("o2pl.evaluation.evaluated_logs", "numeric_evaluated_log")(rows)
    doubt = called_lazily("o2pl.evaluation.held_out", "held_out_doubts")(numbers)
    evidence = called_lazily("o2pl.evaluation.held_out", "held_out_evidence")
    each = 2 * min((1 - confidence) / len(held), 0.499)  # of an interval, of which only the lower end counts
    found = []
    for level, columns in zip(pessimism, held, strict=True):
        value, gain = [columns[:_VALUE]], [columns[_VALUE : 2 * _VALUE]] if known else []
        one = evidence("the new policy", value, numbers, each, doubt, "the incumbent", gain, columns[_OTHER])
        judged = one.judgement
        said = replace(judged, confidence=confidence).sentence(" (jointly for all candidates)")
        gains = (judged.estimate, judged.low)
        found.append(Verdict(judged.better, *gains, float(level), one.pessimistic_gain, judged.reason, said))
    return tuple(found)


class Imitation(NamedTuple):
    """How well a clone acts like what it clones, on rows that it has not learned from."""

    behind: float  # mean log-likelihood of the incumbent minus that of the clone, in nats per row
    error: float  # its standard error
    explored: float  # share of uniform exploration with which the clone is most likely

    @property
    def good(self) -> bool:
        return self.behind - _SURE * self.error <= _NEAR

    def __str__(self) -> str:
        return (
            f"a clone of the incumbent does not act like it: on held-out rows its actions are less likely by"
            f" {self.behind:.2g} ± {self.error:.1g} nats per row"
        )


def imitation_by_improvement_candidate(columns: Floats, likelihoods: Floats, choices: Ints) -> Imitation:
    """Compare a clone's columns [20, n] with the incumbent's probabilities of the logged actions. [n]

    Incumbents often explore uniformly, which a clone alone would miss. choices: number of actions in each row.
    """
    own = np.exp(columns[-1])
    mixed = [np.log(np.maximum((1 - share) * own + share / choices, 1e-300)) for share in _SHARES]
    best = int(np.argmax([one.mean() for one in mixed]))
    behind = np.log(np.maximum(likelihoods, 1e-300)) - mixed[best]
    error = float(behind.std(ddof=1)) / math.sqrt(len(behind))
    return Imitation(float(behind.mean()), error, _SHARES[best])
