from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from o2pl import O2PL
from o2pl.learners.o2pl import CONTROL
from o2pl.simulation.description import built
from o2pl.storage import decode_from_storage
from o2pl_reproduction.studies.bakeoff_learners import (
    BOOK_ARMS,
    DEFAULT_ARMS,
    ENTRANTS,
    FROZEN,
    NOT_TUNED,
    TRIED,
    candidate_learners,
    frozen_learners,
    read_frozen,
)


def test_everyone_who_is_tuned_has_as_many_settings() -> None:
    tried = {name: len(entrant.candidates) for name, entrant in ENTRANTS.items()}
    assert {number for name, number in tried.items() if not name.startswith("vw-")} == {0, TRIED, TRIED + 4}
    assert all(number >= TRIED for name, number in tried.items() if name.startswith("vw-") and "published" not in name)
    params = [json.dumps([each.description["family"], each.description["params"]]) for each in candidate_learners()]
    assert len(set(params)) == len(params)
    tuned = {name for name, number in tried.items() if number}
    playing = {each.description["name"] for each in frozen_learners()}
    assert set(ENTRANTS) - playing == tuned - set(read_frozen())  # who is not tuned yet waits


def test_who_is_to_be_tuned_and_is_not_takes_no_part(tmp_path: Path) -> None:
    entries = read_frozen()
    del entries["linucb"]
    (tmp_path / "frozen.json").write_text(json.dumps(entries))
    everyone = {each.description["name"] for each in frozen_learners()}
    assert {each.description["name"] for each in frozen_learners(tmp_path / "frozen.json")} == everyone - {"linucb"}


def test_settings_make_the_learner_they_describe() -> None:
    for each in (*frozen_learners(), *candidate_learners()):
        settings = json.loads(json.dumps(each.description))
        learner: Any = built(settings, n_actions=4, random_state=11)
        made = learner.get_params()
        assert (made.pop("n_actions"), made.pop("random_state")) == (4, 11)
        assert made.pop("reward_range", (0.0, 1.0)) == (0.0, 1.0)
        assert made == {name: decode_from_storage(value) for name, value in settings["params"].items()}
        assert each.needs == ("vw" if settings["class"] == "VowpalWabbit" else None)


def test_the_default_constructor_is_what_takes_part_and_what_was_frozen() -> None:
    params = {each.description["name"]: each.description["params"] for each in frozen_learners()}
    default = O2PL().get_params()
    assert {name: decode_from_storage(value) for name, value in params["o2pl"].items()}.items() <= default.items()
    frozen = {name: decode_from_storage(value) for name, value in read_frozen()["o2pl"]["settings"].items()}
    assert default["control"] == "auto"  # CONTROL for the worlds of the bake-off, which have fixed actions
    assert O2PL(**frozen).get_params() == default | {"control": CONTROL}


def test_vw_is_tuned_over_its_cost_estimates_where_it_has_more_than_one() -> None:
    kinds = ("--cb_type ips", "--cb_type dr")
    for name, entrant in ENTRANTS.items():
        if name.startswith("vw-") and "published" not in name:
            options = {str(given.get("options", "")) for given in entrant.candidates}
            others = {kind for kind in kinds if any(kind in each for each in options)}
            assert others == (set() if "regcb" in name else set(kinds)), name
            assert any("--cb_type" not in each for each in options)  # VW's own: mtr


def test_arms_of_pessimism_are_their_learner_but_for_penalty_and_clip() -> None:
    params = {each.description["name"]: each.description["params"] for each in frozen_learners()}
    for arms in (DEFAULT_ARMS, BOOK_ARMS):
        own = params[arms.learner]
        assert (decode_from_storage(own["penalty"]), decode_from_storage(own["clip"])) == (arms.penalty, arms.clip)
        for name, given in arms.settings().items():
            other = {key: decode_from_storage(value) for key, value in params[name].items()}
            assert other == {key: decode_from_storage(value) for key, value in own.items()} | dict(given)
    assert set(BOOK_ARMS.settings()) < NOT_TUNED  # on all sets
    assert not set(DEFAULT_ARMS.settings()) & NOT_TUNED  # where the recipe was not tuned


def test_the_published_protocol_is_vw_off_the_shelf() -> None:
    for each in frozen_learners():
        if each.description["protocol"] == "published":
            learner: Any = built(each.description, n_actions=3, random_state=0)
            assert learner.features.maps == ()
            assert (learner.constant, learner.costs, learner.learning_rate) == (False, (0.0, 1.0), 0.5)


def test_the_settings_in_the_documents_are_those_that_play() -> None:
    shown = Path(__file__).parents[3] / "docs/reproduction/bakeoff-settings.json"
    assert shown.read_bytes() == FROZEN.read_bytes()
