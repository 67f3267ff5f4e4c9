"""Sets of actions, what is excluded, and slots that are filled one after another."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving import deciders

from o2pl import InvalidInput
from o2pl.serving.control_assignment import arm_of
from o2pl.serving.deciding import Acting, action_text, slot_text
from o2pl.serving.models import Served
from o2pl.serving.ranking import Offered, Slot, check_ids, fill, places_left, ranked
from o2pl.serving.settings import LearningMode, Settings
from o2pl.serving.store import Store

IDS = ["a", "b", "c"]
OFFERED = Offered(b'"user":"u0"', IDS, [action_text(name, []) for name in IDS])


def served(folder: Path, kind: str = "ranked", **settings: Any) -> Served:
    with Store.open(folder / "o2pl.sqlite") as store:
        store.add_application("shop", kind, Settings(**settings))
        shop = store.application("shop")
    return Served(shop, Acting(shop.kind, shop.settings, 7, deciders.ranked() if kind == "ranked" else None))


def by(one: Served, what: Any, *arguments: Any, **named: Any) -> Any:
    """Call `ranked` or `fill` for the event `e`."""
    return what(one, arm_of(one, "e", b"{}", ()), *arguments, **named)


def test_ids_are_checked() -> None:
    check_ids(["a"], 1)
    for ids, why in (([], "found none"), (["a", "b"], "at most 1"), (["a", "a"], "found the id 'a' twice")):
        with pytest.raises(InvalidInput, match=why):
            check_ids(ids, 1 if why == "at most 1" else 5)


def test_what_is_excluded_is_not_there() -> None:
    assert list(places_left(IDS, None)) == list(places_left(IDS, [])) == [0, 1, 2]
    assert list(places_left(IDS, ["b", "b"])) == [0, 2]
    with pytest.raises(InvalidInput, match="found all 3"):
        places_left(IDS, IDS)
    with pytest.raises(InvalidInput, match="'x'"):
        places_left(IDS, ["x"])


def test_the_row_holds_what_could_be_played(tmp_path: Path) -> None:
    made = by(served(tmp_path), ranked, OFFERED, [0, 2], "e", True)
    row = made.row
    assert (row.event_id, row.actions, row.model_version, row.deferred, row.baseline) == ("e", b'["a","c"]', 7, True, 0)
    assert row.context == b'{"user":"u0","_multi":[{"id":"a"},{"id":"c"}]}'
    pi = np.frombuffer(row.probabilities or b"")
    assert len(pi) == 2
    assert row.propensity == pi[row.action]


def test_the_application_may_say_its_own_choice(tmp_path: Path) -> None:
    assert by(served(tmp_path), ranked, OFFERED, [0, 2], "e", False, own=2).row.baseline == 1


def test_an_apprentice_repeats_the_baseline(tmp_path: Path) -> None:
    made = by(served(tmp_path, learning_mode=LearningMode.APPRENTICE), ranked, OFFERED, [0, 1, 2], "e", False)
    assert (made.row.action, made.row.propensity, made.row.baseline) == (0, 1.0, 0)
    assert made.row.preferred is not None


def test_other_kinds_have_their_own_actions(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected 'ranked'"):
        by(served(tmp_path, "fixed", actions=("x", "y")), ranked, OFFERED, [0, 1, 2], "e", False)


def test_slots_are_filled_whatever_they_exclude(tmp_path: Path) -> None:
    shop = served(tmp_path)
    sets = [list(each) for size in (1, 2, 3) for each in itertools.combinations(range(3), size)]
    for playable in itertools.product(sets, repeat=3):
        slots = [Slot(str(k), slot_text(str(k), []), each, each[0]) for k, each in enumerate(playable)]
        possible = any(all(p[k] in playable[k] for k in range(3)) for p in itertools.permutations(range(3)))
        if not possible:
            with pytest.raises(InvalidInput, match="expected enough actions for all slots"):
                by(shop, fill, OFFERED, slots, "e", False)
            continue
        made = by(shop, fill, OFFERED, slots, "e", False)
        taken = [one.playable[one.drawn.action or 0] for one in made]
        assert len(set(taken)) == 3
        for one, slot, place in zip(made, slots, taken, strict=True):
            assert place in slot.playable
            assert one.row.slot == slot.id
            assert f'"slot":{{"id":"{slot.id}"}}'.encode() in one.row.context
            if one.row.baseline is not None:
                assert one.playable[one.row.baseline] == slot.own


def test_an_apprentice_fills_slots_with_the_baselines(tmp_path: Path) -> None:
    shop = served(tmp_path, learning_mode=LearningMode.APPRENTICE)
    slots = [Slot(str(k), slot_text(str(k), []), [0, 1, 2], own) for k, own in enumerate((2, 0, 1))]
    made = by(shop, fill, OFFERED, slots, "e", False)
    assert [one.playable[one.drawn.action or 0] for one in made] == [2, 0, 1]
