"""The bake-off's rows as arrays: sets, seeds and learners."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Floats, Ints
from o2pl_reproduction.studies.bakeoff_learners import BOOK_ARMS, DEFAULT_ARMS, NOT_TUNED
from o2pl_reproduction.studies.bakeoff_statistics import Pair, compare_pair

if TYPE_CHECKING:
    from pyarrow import Table

LABELS = {
    "o2pl": "O2PL",
    "o2pl-replay": "O2PL, paper's replay",
    "o2pl-replay-tuned": "O2PL, replay tuned",
    "o2pl-book": "O2PL as printed",
    "vw-greedy": "VW Greedy",
    "vw-cover": "VW Cover-nu",
    "vw-bag": "VW Bag-greedy",
    "vw-regcb": "VW RegCB-opt",
    "vw-greedy-quadratic": "VW Greedy, products",
    "vw-cover-quadratic": "VW Cover-nu, products",
    "vw-bag-quadratic": "VW Bag-greedy, products",
    "vw-regcb-quadratic": "VW RegCB-opt, products",
    "ridge-greedy": "ridge-greedy",
    "ridge-greedy-quadratic": "ridge-greedy, products",
    "logistic-greedy": "logistic-greedy",
    "logistic-greedy-quadratic": "logistic-greedy, products",
    "linucb": "LinUCB",
    "lints": "LinTS",
    "uniform": "uniform",
    "vw-greedy-published": "VW Greedy, as published",
    "vw-cover-published": "VW Cover-nu, as published",
    "vw-bag-published": "VW Bag-greedy, as published",
    "vw-regcb-published": "VW RegCB-opt, as published",
    **DEFAULT_ARMS.labels(),
    **BOOK_ARMS.labels(),
}


@dataclass(frozen=True)
class Scores:
    """The rows as arrays: every learner on each of S data sets; NaN for seeds that were not played."""

    names: tuple[str, ...]
    n: Ints  # [S], as d, K and played
    d: Ints
    K: Ints
    played: Ints
    rewards: Mapping[str, Floats]  # learner -> [S, seeds]
    seconds: Mapping[str, Floats]  # learner -> [S, seeds]

    def pair(self, ours: str, theirs: str, which: Any = slice(None)) -> Pair:
        """Compare two learners over all (or some) data sets, on common seeds."""
        rewards = self.paired(ours, theirs)
        return compare_pair(rewards[ours][which], rewards[theirs][which], self.played[which], (self.d * self.K)[which])

    def gaps(self, ours: str, theirs: str) -> Floats:
        """Return the gaps of mean rewards over seeds, [S]."""
        rewards = self.paired(ours, theirs)
        return np.asarray((rewards[ours] - rewards[theirs]).mean(axis=1))

    def paired(self, *learners: str) -> dict[str, Floats]:
        """Return the learners' rewards on common seeds, [S, seeds] each; learners without rows are dropped."""
        there = {name: self.rewards[name] for name in learners if name in self.rewards}
        common = ~np.any([np.isnan(each).any(axis=0) for each in there.values()], axis=0)
        return {name: each[:, common] for name, each in there.items()}

    def on_own_seeds(self) -> dict[str, Floats]:
        """Return each learner's rewards on the seeds it has played."""
        return {name: self.paired(name)[name] for name in self.rewards}

    def cpu(self, learner: str, which: Any = slice(None)) -> float:
        """Return the total CPU seconds of one run on each of these data sets; NaN if they were not measured."""
        spent = self.seconds[learner][which]
        timed = np.isfinite(spent).all(axis=0)
        return float(spent[:, timed].mean(axis=1).sum()) if timed.any() else float("nan")


def scores(rows: Table) -> Scores:
    """Return the scores on the confirmation half, or else on the embedded data sets, or else on the tuning half."""
    half = np.asarray(rows["half"])
    found = _scores(rows.filter(half == _half(half)))
    if "o2pl" not in found.rewards:
        raise InvalidInput("rows: found none of 'o2pl', expected some")
    return found


def published_scores(rows: Table) -> Scores:
    """Of those for whom nothing is tuned: on the sets of both halves, and the seeds, that all of them have played."""
    learners = NOT_TUNED - set(BOOK_ARMS.settings())
    return _scores(_shared(_shared(rows, learners, "world"), learners, "seed"))


def book_scores(rows: Table) -> Scores:
    """Algorithm 1 as printed and its arms, on both halves, on the seeds that all of them have played."""
    return _scores(_shared(rows, set(BOOK_ARMS.names), "seed"))


def _shared(rows: Table, learners: Collection[str], column: str) -> Table:
    """Rows of these learners, of those worlds (or seeds) for which there are as many rows as for any."""
    half, learner = np.asarray(rows["half"]), np.asarray(rows["learner"])
    halves = [_half(half)] if _half(half) == "embedded" else ["confirmation", "tuning"]
    found = rows.filter(np.isin(half, halves) & np.isin(learner, sorted(learners)))
    names = np.char.add(np.asarray(found["learner"]).astype(str), "/")
    if column == "seed":
        names = np.char.add(names, np.asarray(found["world"]).astype(str))
    groups = np.asarray(found[column])
    met = {group: len(np.unique(names[groups == group])) for group in np.unique(groups)}
    most = max(met.values(), default=0)
    return found.filter(np.isin(groups, [group for group, number in met.items() if number == most]))


def _half(halves: Any) -> str:
    return next(each for each in ("confirmation", "embedded", "tuning") if (halves == each).any())


def _scores(table: Table) -> Scores:
    column = {name: np.asarray(table[name]) for name in ("world", "learner", "seed", "position", "mean_reward")}
    worlds, first = np.unique(column["world"], return_index=True)
    order = np.argsort(column["position"][first], kind="stable")
    names, first = worlds[order], first[order]
    seeds = np.unique(column["seed"])
    places = {(str(w), int(s)): (i, j) for i, w in enumerate(names) for j, s in enumerate(seeds)}
    rewards: dict[str, Floats] = {}
    seconds: dict[str, Floats] = {}
    for learner in (name for name in LABELS if name in set(column["learner"].tolist())):
        mine = np.flatnonzero(column["learner"] == learner)
        at = np.array([places[str(column["world"][row]), int(column["seed"][row])] for row in mine])
        for target, name in ((rewards, "mean_reward"), (seconds, "cpu_seconds")):
            target[learner] = np.full((len(names), len(seeds)), np.nan)
            target[learner][at[:, 0], at[:, 1]] = np.asarray(table[name])[mine]
        expected = len(names) * len(np.unique(column["seed"][mine]))
        if len(mine) != expected:
            raise InvalidInput(f"rows: found {len(mine)} of {learner}, expected {expected}: every set for each seed")
    sizes = {name: np.asarray(table[name])[first] for name in ("n", "d", "K", "played")}
    return Scores(tuple(str(name) for name in names), rewards=rewards, seconds=seconds, **sizes)
