"""The table of units: numbers that stay, choices that filter, digests that tell settings apart."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from toy_experiment import LEARNERS, TOY, WORLDS

from o2pl.errors import InvalidInput
from o2pl.extras import EXTRAS
from o2pl.simulation.experiment import Cell, Options, Unit, nearest

FULL = Options("full")


def everything(seeds: int) -> dict[int, tuple[str, str, int]]:
    """The table written out by hand: seed by seed, world by world, learner by learner."""
    rows = [(world, learner, seed) for seed in range(seeds) for world in WORLDS for learner in LEARNERS]
    return dict(enumerate(rows))


def named(units: list[Unit]) -> dict[int, tuple[str, str, int]]:
    return {unit.number: (unit.world["name"], unit.learner["name"], unit.seed) for unit in units}


def test_the_full_table() -> None:
    units = TOY.units(FULL)
    assert named(units) == everything(seeds=2)
    assert [unit.number for unit in units] == list(range(12))
    assert {unit.rounds for unit in units} == {3}
    assert units[7].id == "toy/7"


@pytest.mark.parametrize(
    "options",
    [
        Options("quick"),
        Options("full", seeds=[4]),
        Options("full", seeds=range(7)),
        Options("full", learners=["two"]),
        Options("quick", datasets=["moon"], learners=["three", "one"], seeds=[3, 1]),
        Options("full", rounds=1),
    ],
)
def test_choosing_never_renumbers(options: Options) -> None:
    units = TOY.units(options)
    chosen = named(units)
    assert chosen.items() <= everything(seeds=8).items()
    wanted = everything(seeds=8).values()
    seeds = range(TOY.size(options).seeds) if options.seeds is None else options.seeds
    learners = options.learners or LEARNERS
    datasets = options.datasets or TOY.size(options).datasets or WORLDS
    assert list(chosen.values()) == [
        row for row in wanted if row[0] in datasets and row[1] in learners if row[2] in seeds
    ]
    assert [TOY.unit(number, options) for number in chosen] == units


def test_digest_depends_on_what_the_rows_depend_on_and_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = TOY.unit(7, FULL)
    changed = [
        replace(unit, rounds=unit.rounds + 1),
        replace(unit, seed=unit.seed + 1),
        replace(unit, world={**unit.world, "noise": 0.1}),
        replace(unit, learner={**unit.learner, "step": 0.1}),
        replace(unit, experiment="toys"),
    ]
    assert len({each.digest for each in [unit, *changed]}) == 1 + len(changed)
    assert replace(unit, data="elsewhere", number=3).digest == unit.digest
    assert json.loads(unit.settings)["learner"] == {"name": "two"}
    before = unit.digest
    monkeypatch.setattr("o2pl.__version__", "0.0.0")
    assert unit.digest != before


def test_a_learner_whose_extra_is_missing_is_left_out_without_renumbering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "odd", ("a_package_that_nobody_has",))
    monkeypatch.setitem(EXTRAS, "even", ("json",))

    def cells(data: str | None) -> list[Cell]:
        rare = Cell({"name": "sun"}, {"name": "rare"}, needs="odd")
        return [rare, Cell({"name": "sun"}, {"name": "common"}, needs="even")]

    experiment = replace(TOY, cells=cells)
    assert [unit.number for unit in experiment.units(FULL)] == [1, 3]
    assert experiment.left_out(FULL) == {"rare": "odd"}
    assert [unit.number for unit in experiment.units(Options("full", learners=["rare"]))] == [0, 2]


def test_a_cell_may_have_fewer_seeds_without_renumbering() -> None:
    def cells(data: str | None) -> list[Cell]:
        return [Cell({"name": "sun"}, {"name": "slow"}, seeds=1), Cell({"name": "sun"}, {"name": "fast"})]

    experiment = replace(TOY, cells=cells)
    assert [unit.number for unit in experiment.units(FULL)] == [0, 1, 3]
    assert [unit.number for unit in experiment.units(Options("full", seeds=[1]))] == [2, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options("huge"), "size: found 'huge', expected one of"),
        (Options(learners=["tow"]), "learners: found 'tow' for toy, expected 'two'"),
        (Options(datasets=["mooon"]), "datasets: found 'mooon' for toy, expected 'moon'"),
        (Options(datasets=["xyzzy"]), "expected one of sun, moon"),
        (Options(rounds=0), "rounds: found 0, expected a number from 1"),
    ],
)
def test_what_cannot_be_is_said(options: Options, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TOY.units(options)


def test_nearest_names_come_first() -> None:
    assert nearest("whel", {"wheel": 1, "toy": 2}) == "expected 'wheel'"
    assert nearest("zzz", {"wheel": 1, "toy": 2}) == "expected one of wheel, toy"
