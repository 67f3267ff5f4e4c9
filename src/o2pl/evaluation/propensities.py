"""Estimated propensities, for logs without propensities or with wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.evaluation.evaluated_logs import as_evaluated_log, numeric_evaluated_log
from o2pl.evaluation.multinomial import fit_action_wise_multinomial, fit_multinomial
from o2pl.protocols import Floats, Ints, Seed

_BINS = 20  # bins of real-valued actions, with equally many rows
_FOLDS = 5
_CHANCES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
_LIKELY, _MOSTLY = 0.5, 0.85  # thresholds of a deterministic log: the most likely action is nearly always played,
_SURPRISE, _RARELY = 0.15, 0.002  # and an unlikely one hardly ever


def estimate_propensities(log: object, *, folds: int = _FOLDS, seed: Seed = 0) -> Interactions:
    """Return the log with estimated propensities: cross-fitted multinomial logistic regression on the contexts.

    No row is used for its own prediction. Influences on the actions that are not in the contexts are missed. Such
    estimates are good enough for learning, and for `evaluate`, which reports how wrong they may be before the result
    changes. Real-valued actions are grouped into 20 intervals with equally many rows. Action sets share one weight
    vector.
    """
    given = as_evaluated_log(log)
    numbers = numeric_evaluated_log(given)
    return given.changed(propensities=with_estimated_propensities(numbers, folds=folds, seed=seed))


def with_estimated_propensities(log: Interactions, *, folds: int = _FOLDS, seed: Seed = 0) -> Floats:
    """Return cross-fitted μ̂(a_s|x_s), at least 1/n; a density for real-valued actions. [n]"""
    n = len(log)
    place = np.resize(np.arange(min(folds, n)), n)
    np.random.default_rng(seed).shuffle(place)
    found = np.empty(n)
    actions, widths = _numbered_for_propensities(log)
    for fold in range(place.max() + 1):
        mine = np.flatnonzero(place == fold)
        others = np.flatnonzero(place != fold)
        here = log.encoded[mine]
        if here.items is not None:
            table = fit_action_wise_multinomial(log.contexts[others], actions[others])(log.contexts[mine])
        elif len(others):
            table = fit_multinomial(log.contexts[others], actions[others], len(widths))(here.shared)
        else:
            found[mine] = 1.0
            continue
        found[mine] = table[here.places(actions[mine])]
    found = np.maximum(_propensities_with_chance(found, log.encoded.counts(len(widths))), 1 / max(n, 2))
    return np.asarray(found / widths[actions]) if log.continuous else found


def _propensities_with_chance(found: Floats, choices: Ints) -> Floats:
    """Return (1 - ε) μ̂ + ε / K with the most likely ε: loggers often explore uniformly, which μ̂ alone would miss."""
    mixed = [(1 - share) * found + share / choices for share in _CHANCES]
    return mixed[int(np.argmax([np.log(np.maximum(one, 1e-300)).mean() for one in mixed]))]


def _numbered_for_propensities(log: Interactions) -> tuple[Any, Floats]:
    """Return the action's index in each row, and the measure of each action."""
    if not log.continuous:
        return log.actions, np.ones(log.n_actions or 1)
    edges = np.unique(np.quantile(log.actions, np.linspace(0, 1, _BINS + 1)))
    if len(edges) < 2:
        return np.zeros(len(log), np.int64), np.ones(1)
    return np.clip(np.searchsorted(edges, log.actions, side="right") - 1, 0, len(edges) - 2), np.diff(edges)


def deterministic_propensities(propensities: Floats, continuous: bool) -> bool:
    """Return whether the contexts determine the action, as far as estimates show: they are confident and rarely wrong.

    For randomly drawn actions, estimates that are as confident would be wrong in a few percent of the rows.
    """
    mostly = float((propensities > _LIKELY).mean()) > _MOSTLY
    return not continuous and mostly and float((propensities < _SURPRISE).mean()) < _RARELY
