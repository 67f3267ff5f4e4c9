from __future__ import annotations

from pathlib import Path

import pytest
from structures_folder import SETS, write_sets

from o2pl.simulation.worlds import Drifting, Structured, Wheel
from o2pl.simulation.worlds.structured import CHANGES, STRUCTURES
from o2pl.storage import decode_from_storage
from o2pl_reproduction.studies import structures_worlds
from o2pl_reproduction.studies.structures_worlds import (
    DRIFT_SETS,
    FIRST_SEED,
    INDEPENDENT,
    MANY,
    PARTS,
    QUICK,
    confirmation,
    sets,
    tuning,
    tuning_worlds,
    worlds,
)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return write_sets(tmp_path)


def test_worlds_have_names_of_their_own_and_say_what_they_are(folder: str) -> None:
    found = worlds(folder, "structures")
    names = [each["name"] for each in found]
    assert len(set(names)) == len(names)
    by_name = {each["name"]: each for each in found}
    rare = by_name["structures:rare:3_three"]
    assert (rare["part"], rare["structure"], rare["set"], rare["half"]) == (
        "structures",
        "rare",
        "3_three",
        "confirmation",
    )
    assert (rare["rounds"], rare["first_seed"]) == (2000, 8000)
    assert isinstance(decode_from_storage(rare["world"]), Structured)
    assert decode_from_storage(rare["world"]).structure == "rare"
    gradual = decode_from_storage(by_name["drift:gradual:28_optdigits"]["world"])
    assert isinstance(gradual, Drifting)
    assert gradual.change == "gradual"
    assert decode_from_storage(by_name["wheel"]["world"]) == Wheel(delta=0.95)
    assert set(QUICK) <= set(names)
    assert {each["part"] for each in found} == set(PARTS)


def test_six_structures_want_three_classes_and_three_hundred_rows(folder: str) -> None:
    played = {each["set"] for each in worlds(folder, "structures") if each["part"] == "structures"}
    assert played - {"iris", "wine", "digits"} == {"7_seven", "3_three", "5_five", "28_optdigits"}


def test_the_confirmation_plays_odd_sets_and_the_drift_sets_of_both_halves(folder: str) -> None:
    chosen = [each for each in worlds(folder, "structures") if each["name"] in confirmation(folder)]
    by_part = {part: {each["set"] for each in chosen if each["part"] == part} for part in PARTS}
    assert by_part["one-hot"] == {"3_three", "1_one", "2_two", "44_spambase"}
    assert by_part["structures"] == {"3_three"}
    assert by_part["drift"] == {"28_optdigits", "44_spambase"}  # the first is even here
    assert by_part["independent"] == set(INDEPENDENT)
    assert by_part["many actions"] == set(MANY)
    drift = [each["structure"] for each in chosen if each["set"] == "28_optdigits"]
    assert drift == list(CHANGES)
    embedded = [each for each in worlds(None, "structures") if each["name"] in confirmation(None)]
    assert {each["half"] for each in embedded} == {"embedded", "synthetic"}


def test_tuning_never_opens_the_confirmation_half(folder: str) -> None:
    found = tuning_worlds(folder)
    assert {each["half"] for each in found} == {"embedded", "tuning"}
    assert {each["part"] for each in found} == {"structures"}
    assert {each["first_seed"] for each in found} == {5000}
    assert tuning(folder) == [f"structures:{name}:5_five" for name in STRUCTURES]  # every third, from the second on
    assert FIRST_SEED == {"structures": 8000, "structures-tuning": 5000}


def test_sizes_come_from_the_manifest_or_else_from_the_data(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {each.name: (each.n, each.n_classes) for each in sets(folder) if each.half != "embedded"}
    assert known == SETS
    monkeypatch.setattr(structures_worlds, "read_dataset_manifest", lambda folder: {})
    assert {each.name: (each.n, each.n_classes) for each in sets(folder) if each.half != "embedded"} == SETS
    assert all(getattr(each.source, "folder", None) is None for each in sets(folder))  # where they lie is no setting


def test_sizes_of_embedded_sets() -> None:
    for each in sets(None):
        dataset = each.source.load()
        assert (each.n, each.n_classes) == (len(dataset), len(dataset.classes))


def test_the_drift_sets_are_eight() -> None:
    assert len(set(DRIFT_SETS)) == 8
