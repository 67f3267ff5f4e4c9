"""The worlds of `structures`: classification sets under six reward structures, under change, and synthetic worlds.

Sets of a folder are counted as in the bake-off: even positions of its catalogue are the tuning half, odd positions the
confirmation half. Without a folder, the embedded data sets are used as a small example without verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from o2pl.simulation.description import Description
from o2pl.simulation.worlds import (
    WORLDS,
    BernoulliTask,
    Classification,
    Drifting,
    ParquetSet,
    Structured,
    Synthetic,
    Wheel,
    catalogue,
)
from o2pl.simulation.worlds.datasets import Source, read_dataset_manifest
from o2pl.simulation.worlds.structured import CHANGES, STRUCTURES
from o2pl.storage import encode_for_storage
from o2pl_reproduction.studies.classification import EMBEDDED, HALVES

FIRST_SEED = {"structures": 8000, "structures-tuning": 5000}  # the unit's seed is counted from here
FEWEST_CLASSES, FEWEST_ROWS = 3, 300  # of the sets that play under six structures


@dataclass(frozen=True)
class Part:
    """Largest number of rounds (at most the rows of a data set), and seeds at full size."""

    rounds: int
    seeds: int


PARTS: dict[str, Part] = {
    "one-hot": Part(5000, 10),
    "structures": Part(2000, 5),
    "drift": Part(4000, 5),
    "independent": Part(4000, 10),
    "many actions": Part(4000, 5),
    "wheel": Part(10_000, 10),
}

# At least 4,000 rows; a linear logistic regression that is shown all labels is right in 85 % of 4,000 of them (three
# folds); no class has more than 90 % of the rows. covertype-libsvm, a second form of covertype, is left out.
DRIFT_SETS = (
    "26_nursery",
    "28_optdigits",
    "30_page-blocks",
    "32_pendigits",
    "44_spambase",
    "60_waveform-5000",
    "182_satimage",
    "375_JapaneseVowels",
)
EMBEDDED_SIZES = {  # rows and classes, so that listing units needs no data
    "iris": (150, 3),
    "wine": (178, 3),
    "breast-cancer": (569, 2),
    "digits": (1797, 10),
}
EMBEDDED_DRIFT = ("breast-cancer", "digits")
INDEPENDENT: dict[str, BernoulliTask] = {  # one logistic model of the reward per action, all drawn apart
    f"independent-d{d}-K{k}": BernoulliTask("logistic", features=d, n_actions=k, seed=place)
    for place, (d, k) in enumerate(((5, 3), (10, 5), (20, 5), (10, 10)))
}
MANY: dict[str, Classification] = {  # one cluster per class: K well-defined classes, as in letter
    f"many-d{d}-K{k}": Classification(Synthetic(features=d, classes=k, clusters=1, rows=5000, seed=place))
    for place, (d, k) in enumerate(((8, 12), (12, 16), (16, 20), (12, 24), (16, 26)))
}
WHEEL = Wheel()  # δ = .95, as in the study `wheel`


@dataclass(frozen=True)
class NamedSet:
    name: str
    source: Source
    half: str
    n: int
    n_classes: int


def sets(data: str | None) -> list[NamedSet]:
    """Return the embedded data sets, then those of the folder with their half."""
    found = [NamedSet(name, _embedded(name), "embedded", *EMBEDDED_SIZES[name]) for name in EMBEDDED]
    manifest: Mapping[int, Mapping[str, str]] = {} if data is None else read_dataset_manifest(Path(data))
    for position, (name, source) in enumerate(catalogue(data).items() if data is not None else ()):
        half, row = HALVES[position % 2], manifest.get(source.id)
        if row is None:
            dataset = source.load()
            found.append(NamedSet(name, ParquetSet(source.id), half, len(dataset), len(dataset.classes)))
        else:
            found.append(NamedSet(name, ParquetSet(source.id), half, int(row["rows"]), int(row["n_classes"])))
    return found


def _embedded(name: str) -> Source:
    world: Any = WORLDS[name]
    source: Source = world.source
    return source


def structured(each: NamedSet) -> bool:
    """Return whether the data set is used under six structures."""
    return each.n_classes >= FEWEST_CLASSES and (each.n >= FEWEST_ROWS or each.half == "embedded")


def every_other(data: str | None) -> set[str]:
    """Of each half's sets that play under six structures every other one, from the first on; and the embedded ones."""
    found = list(filter(structured, sets(data)))
    chosen = (name for half in HALVES for name in [each.name for each in found if each.half == half][::2])
    return {*EMBEDDED, *chosen}


def worlds(data: str | None, experiment: str) -> list[Description]:
    """Return all worlds of both halves."""
    return [*_of_sets(sets(data), experiment), *_synthetic(experiment)]


def _of_sets(found: Sequence[NamedSet], experiment: str) -> Iterator[Description]:
    for each in found:
        yield _world("one-hot", "one-hot", each.name, Classification(each.source), each.half, experiment)
    for each in filter(structured, found):
        for name in STRUCTURES:
            yield _world("structures", name, each.name, Structured(each.source, name), each.half, experiment)
    for each in found:
        if each.name in (*DRIFT_SETS, *EMBEDDED_DRIFT):
            for change in CHANGES:
                yield _world("drift", change, each.name, Drifting(each.source, change), each.half, experiment)


def _synthetic(experiment: str) -> Iterator[Description]:
    for part, named in (("independent", INDEPENDENT), ("many actions", MANY), ("wheel", {"wheel": WHEEL})):
        for name, world in named.items():
            yield _world(part, part, name, world, "synthetic", experiment)


def _world(part: str, structure: str, name: str, world: Any, half: str, experiment: str) -> Description:
    """Describe a world. `structure`: what distinguishes the part's worlds besides the data set."""
    return {
        "name": name
        if half == "synthetic"
        else f"{part}:{structure}:{name}"
        if part != structure
        else f"{part}:{name}",
        "part": part,
        "structure": structure,
        "set": name,
        "half": half,
        "world": encode_for_storage(world),
        "rounds": PARTS[part].rounds,
        "first_seed": FIRST_SEED[experiment],
    }


# -- selection by size


def confirmation(data: str | None) -> Sequence[str]:
    """Return the odd half, the eight drifting data sets (of both halves) and synthetic worlds; or embedded sets."""
    half = "embedded" if data is None else "confirmation"
    return [
        each["name"]
        for each in worlds(data, "structures")
        if each["half"] in (half, "synthetic") or (data is not None and each["set"] in DRIFT_SETS and _drifts(each))
    ]


def _drifts(world: Description) -> bool:
    return bool(world["part"] == "drift")


def tuning(data: str | None) -> Sequence[str]:
    """Every third set of the even half that plays under six structures, from the second on; or of the embedded ones."""
    half = "embedded" if data is None else "tuning"
    names = [each.name for each in sets(data) if each.half == half and structured(each)][1::3]
    return [each["name"] for each in tuning_worlds(data) if each["set"] in names]


def tuning_worlds(data: str | None) -> list[Description]:
    """Return the worlds under six structures, without the confirmation half."""
    found = worlds(data, "structures-tuning")
    return [each for each in found if each["part"] == "structures" and each["half"] != "confirmation"]


QUICK: tuple[str, ...] = (
    "one-hot:iris",
    "one-hot:wine",
    *(f"structures:{name}:wine" for name in STRUCTURES),
    *(f"drift:{change}:digits" for change in CHANGES),
    next(iter(INDEPENDENT)),
    next(iter(MANY)),
    "wheel",
)
