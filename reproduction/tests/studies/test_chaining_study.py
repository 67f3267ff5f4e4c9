from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from o2pl_reproduction.studies import chaining_checks as checks
from o2pl_reproduction.studies import chaining_study as module


def rows(**changed: float) -> pa.Table:
    """Five seeds of what the checks make; `changed`: kind -> its measured value."""
    measured = {
        "transfer": 0.1, "trapped": 1.0, "maximal": 0.0, "maximal-size": 0.004, "peeling": 0.0, "penalty": 0.0,
        "penalty-size": 0.2, "useful": 4e6, "margin": 0.7, "margin-sharp": 1.0,
    } | {kind.replace("_", "-"): value for kind, value in changed.items()}  # fmt: skip
    places = [
        *itertools.product(("transfer", "trapped"), ("transfer",), checks.EPSILONS, checks.SIGMAS),
        *itertools.product(("margin", "margin-sharp"), ("margin-constant-1",), checks.KAPPAS, checks.OVERLAPS),
    ]
    for p in checks.PS:
        name = f"chaining-p-{p:g}"
        places += itertools.product(("maximal", "maximal-size"), (name,), checks.PATHS["n"], checks.PATHS["sigmas"])
        places += itertools.product(("peeling", "penalty-size"), (name,), checks.PATHS["n"], (p,))
        places += [("penalty", name, 0.0, p), ("useful", name, p, 1.0)]
    lines = [
        (seed, world, kind, x, z, measured[kind], 0.05 if kind in ("maximal", "peeling", "penalty") else 1.0, 200)
        for seed in range(5)
        for kind, world, x, z in places
    ]
    names = ("seed", "world", "kind", "x", "z", "measured", "reference", "trials")
    return pa.table({name: [line[place] for line in lines] for place, name in enumerate(names)})


def outcomes(table: pa.Table) -> dict[str, str]:
    return {claim.id.removeprefix("theory/"): claim.outcome for claim in module.claims(table)}


def test_what_holds_is_said_to_hold() -> None:
    found = outcomes(rows())
    missed = {name for name, outcome in found.items() if outcome != "met"}
    assert missed == {"chaining-loose", "chaining-useful"}
    assert len(module.table(rows())) == 27
    assert len(module.figure(rows()).axes) == 3


CHANGES = [
    ("transfer", 1.1, "entropy-transfer"),
    ("maximal", 0.1, "maximal-inequality"),
    ("peeling", 0.1, "peeling"),
    ("penalty", 0.1, "penalty-covers"),
    ("penalty_size", 0.3, "penalty-constant"),
    ("margin", 1.1, "margin-constant"),
    ("margin_sharp", 1.2, "margin-sharp"),
]


@pytest.mark.parametrize(("kind", "value", "claim"), CHANGES)
def test_verdicts_follow_the_rows(kind: str, value: float, claim: str) -> None:
    before, after = outcomes(rows()), outcomes(rows(**{kind: value}))
    assert after[claim] == "missed"
    assert {name for name in before if before[name] != after[name]} == {claim}
