"""The rows of `structures` as arrays: a figure per run, and pairs of learners on the runs that both have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl_reproduction.studies.bakeoff_statistics import Pair, compare_pair
from o2pl_reproduction.studies.structures_worlds import DRIFT_SETS

if TYPE_CHECKING:
    from pyarrow import Table

LAST_QUARTER = 0.75
_READ = ("half", "d", "K", "played", "round", "reward", "uniform", "best", "changes", "cpu_seconds")


@dataclass(frozen=True)
class StructuresPlayed:
    """One run. Means are over its rounds."""

    half: str
    d: int
    n_actions: int
    rounds: int
    reward: float
    share: float
    late: float  # mean reward in the last quarter
    regret: float
    changes: int
    seconds: float
    course: tuple[tuple[float, float], ...]  # (share of the rounds so far, mean reward of the stretch up to there)


Key = tuple[str, str, str, str]  # part, structure, set, learner
Runs = dict[Key, dict[int, StructuresPlayed]]  # by seed


def read_runs(rows: Table) -> Runs:
    """Return the runs of the confirmation half (else embedded sets), of drifting sets and synthetic worlds."""
    table = rows.to_pydict()
    halves = set(table["half"])
    wanted = {next((each for each in ("confirmation", "embedded", "tuning") if each in halves), ""), "synthetic"}
    stretches: dict[tuple[Key, int], list[int]] = {}
    for row, half in enumerate(table["half"]):
        drifts = table["part"][row] == "drift" and table["set"][row] in DRIFT_SETS
        if half in wanted or drifts:
            key = (table["part"][row], table["structure"][row], table["set"][row], table["learner"][row])
            stretches.setdefault((key, table["seed"][row]), []).append(row)
    runs: Runs = {}
    for (key, seed), places in stretches.items():
        runs.setdefault(key, {})[seed] = _played({name: [table[name][row] for row in places] for name in _READ})
    if not any(learner == "bandit" for *_, learner in runs):
        raise InvalidInput("rows: found none of 'bandit', expected some")
    return runs


def _played(stretches: dict[str, list[float]]) -> StructuresPlayed:
    ends, rounds = np.array(stretches["round"]), int(stretches["played"][0])
    lengths = np.diff(ends, prepend=0)
    reward, uniform, best = (np.array(stretches[name]) for name in ("reward", "uniform", "best"))
    late = ends > LAST_QUARTER * rounds
    gained, possible = ((lengths @ (each - uniform)) / rounds for each in (reward, best))
    return StructuresPlayed(
        half=str(stretches["half"][0]),
        d=int(stretches["d"][0]),
        n_actions=int(stretches["K"][0]),
        rounds=rounds,
        reward=float(lengths @ reward / rounds),
        share=float(gained / possible),
        late=float(np.average(reward[late], weights=lengths[late])),
        regret=float(lengths @ (best - reward)),
        changes=int(stretches["changes"][0]),
        seconds=float(stretches["cpu_seconds"][0]),
        course=tuple(zip((ends / rounds).tolist(), reward.tolist(), strict=True)),
    )


def learners_of(runs: Runs, part: str, structure: str | None = None) -> list[str]:
    return list(dict.fromkeys(key[3] for key in runs if key[0] == part and structure in (None, key[1])))


def structures_of(runs: Runs, part: str) -> list[str]:
    return list(dict.fromkeys(key[1] for key in runs if key[0] == part))


def sets_of(runs: Runs, part: str) -> list[str]:
    return list(dict.fromkeys(key[2] for key in runs if key[0] == part))


def by_set(runs: Runs, part: str, structure: str, learner: str, measure: str) -> dict[str, Floats]:
    """Return data set -> the measure of each seed, in order."""
    return {
        key[2]: np.array([getattr(played[seed], measure) for seed in sorted(played)])
        for key, played in runs.items()
        if (key[0], key[1], key[3]) == (part, structure, learner)
    }


def set_means(runs: Runs, part: str, structures: Iterable[str], learner: str, measure: str) -> Floats:
    """Return the mean over structures and seeds on each data set, [sets]."""
    found: dict[str, list[float]] = {}
    for structure in structures:
        for name, values in by_set(runs, part, structure, learner, measure).items():
            found.setdefault(name, []).append(float(values.mean()))
    return np.array([np.mean(each) for each in found.values()])


def gaps(runs: Runs, part: str, structures: Sequence[str], ours: str, theirs: str, measure: str) -> Floats:
    """Return ours minus theirs on each data set: mean over structures and common seeds. [sets]"""
    return np.array(list(gaps_by_set(runs, part, structures, ours, theirs, measure).values()))


def gaps_by_set(
    runs: Runs, part: str, structures: Sequence[str], ours: str, theirs: str, measure: str
) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for (where, structure, name, learner), own in runs.items():
        if where != part or structure not in structures or learner != ours:
            continue
        other = runs.get((part, structure, name, theirs), {})
        both = sorted(set(own) & set(other))
        if both:
            difference = [getattr(own[seed], measure) - getattr(other[seed], measure) for seed in both]
            found.setdefault(name, []).append(float(np.mean(difference)))
    return {name: float(np.mean(each)) for name, each in found.items()}


def one_hot_pair(runs: Runs, theirs: str) -> Pair:
    """Compare `Bandit` with a rival on the one-hot data sets of the bake-off."""
    ours, other = (by_set(runs, "one-hot", "one-hot", learner, "reward") for learner in ("bandit", theirs))
    if {name: len(each) for name, each in ours.items()} != {name: len(each) for name, each in other.items()}:
        raise InvalidInput(f"rows: found other sets or seeds of {theirs} than of bandit, expected the same")
    names = list(ours)
    first = [next(iter(runs["one-hot", "one-hot", name, "bandit"].values())) for name in names]
    own, their = (np.stack([each[name] for name in names]) for each in (ours, other))
    played = np.array([each.rounds for each in first])
    return compare_pair(own, their, played, np.array([each.d * each.n_actions for each in first]))
