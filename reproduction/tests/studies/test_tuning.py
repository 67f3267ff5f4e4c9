"""The search for settings: as long for every method, on seeds of its own, and finding what there is to find."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from o2pl.evaluation.play import play, regret
from o2pl.simulation.worlds import LOGGED_TASKS
from o2pl_reproduction.studies import offline, tuning, wheel, wheel_learners
from o2pl_reproduction.studies.overlap import FLOORS
from o2pl_reproduction.studies.tuning import (
    FINALISTS,
    FINALISTS_SHOWN,
    TUNINGS,
    ZOOMS,
    Dial,
    TunedMethod,
    Tuning,
    choose,
    edges,
    ranked,
)


def bowl(x: float, y: float) -> Any:
    """What makes a learner whose score is highest at x = 5, y = 0.2; seed 7 is kinder to small x."""
    return lambda seed: -(np.log(x / 5) ** 2) - np.log(y / 0.2) ** 2 - (0.1 * x if seed == 7 else 0.0)


def slope(x: float, y: float) -> Any:
    return lambda seed: float(x)


X, Y = (Dial(name, (0.1, 1.0, 10.0), (1 / 2, 1.0, 2.0)) for name in "xy")


def searched(makes: dict[str, Any], **changed: Any) -> tuple[dict[str, tuning.Choice], list[tuple[str, int]]]:
    played: list[tuple[str, int]] = []

    def score(make: Any, seed: int) -> float:
        played.append((make[0], seed))
        return float(make[1](seed))

    def named(name: str, make: Any, *values: float) -> Any:
        return name, make(*values)

    methods = {name: TunedMethod((X, changed.get("y", Y)), partial(named, name, make)) for name, make in makes.items()}
    return choose(Tuning(methods, score, seeds=(4, 5), further=(7, 8))), played


@pytest.mark.parametrize("name", TUNINGS)
def test_every_method_has_the_same_number_of_settings_and_no_reported_seed(name: str) -> None:
    one = TUNINGS[name]
    for method in one.methods.values():
        coarse = list(itertools.product(*(dial.coarse for dial in method.dials)))
        middle = [dial.coarse[len(dial.coarse) // 2] for dial in method.dials]
        nearby = set(itertools.product(*(d.around(value) for d, value in zip(method.dials, middle, strict=True))))
        assert len(set(coarse)) == len(nearby) == 27
        assert len(nearby - set(coarse)) >= 24  # the middle itself is not new; one or two may round to the same
    assert min(*one.seeds, *one.further) >= 1000
    assert not set(one.seeds) & set(one.further)
    assert not set(tuning.TUNING_FLOORS) & set(FLOORS)


def test_the_settings_in_use_have_a_value_for_each_dial() -> None:
    for settings in wheel_learners.TUNED.values():
        assert {name: len(values) for name, values in settings.items()} == {
            name: len(dials) for name, dials in tuning.WHEEL_DIALS.items()
        }
    for settings in (offline.SYNTHETIC, offline.MULTICLASS):
        assert {name: len(values) for name, values in settings.items()} == {
            name: len(dials) for name, dials in tuning.OFFLINE_DIALS.items()
        }


def test_the_search_finds_the_best_of_what_it_tries_and_zooms_in_on_it() -> None:
    choices, played = searched({"bowl": bowl})
    tried = choices["bowl"].tried
    coarse = set(itertools.product((0.1, 1.0, 10.0), repeat=2))  # best: (10, .1)
    assert set(list(tried)[:9]) == coarse
    assert set(list(tried)[9:17]) == set(itertools.product((5.0, 10.0, 20.0), (0.05, 0.1, 0.2))) - {(10.0, 0.1)}
    finer = (10 / 2**0.5, 10.0, 10 * 2**0.5), (0.1 / 2**0.5, 0.1, 0.1 * 2**0.5)
    assert set(list(tried)[17:25]) == {(float(f"{x:.3g}"), float(f"{y:.3g}")) for x, y in itertools.product(*finer)} - {
        (10.0, 0.1)
    }
    assert choices["bowl"].setting == (5.0, 0.2)
    assert choices["bowl"].edges == ()
    assert sum(len(scores) > 2 for scores in tried.values()) == FINALISTS
    assert len(played) == 2 * len(tried) + 2 * FINALISTS


def test_the_further_seeds_count() -> None:
    def make(x: float, y: float) -> Any:
        return lambda seed: bowl(x, y)(seed) - (100 if (seed, x, y) == (8, 5.0, 0.2) else 0)

    choice = searched({"bowl": make})[0]["bowl"]
    assert choice.setting != (5.0, 0.2)
    assert len(choice.tried[choice.setting]) == 4
    means = {
        setting: np.mean([scores[s] for s in (4, 5, 7, 8)]) for setting, scores in choice.tried.items() if 7 in scores
    }
    assert choice.setting == max(means, key=lambda setting: means[setting])


def test_an_edge_gives_all_methods_more_and_is_said_if_it_remains() -> None:
    choices, played = searched({"bowl": bowl, "slope": slope})
    assert len(played) == sum(len(s) for choice in choices.values() for s in choice.tried.values())  # nothing twice
    assert choices["slope"].setting[0] == 10.0 * 2**ZOOMS
    assert choices["slope"].edges == ("x",)  # of y nothing depends: that its value is outermost is no edge
    assert len(choices["bowl"].tried) == len(choices["slope"].tried) == 9 + 26 * ZOOMS
    assert len(searched({"bowl": bowl})[0]["bowl"].tried) == 9 + 26
    limited = Dial("y", (0.1, 1.0), (1 / 2, 1.0, 2.0), highest=1.0)
    assert limited.around(1.0) == (0.5, 1.0, 1.0)
    at_limit = {(x, y): {4: y, 5: y} for x in (1.0, 2.0, 3.0) for y in (0.5, 0.7, 1.0)}
    assert edges((X, limited), at_limit) == ()
    assert edges((X, Y), at_limit) == ("y",)


def test_the_best_is_one_that_has_played_all_seeds() -> None:
    assert ranked({(1.0,): {4: 9.0}, (2.0,): {4: 1.0, 5: 1.0}, (3.0,): {4: 2.0, 5: 1.0}}) == [(3.0,), (2.0,), (1.0,)]


def test_an_edge_within_the_noise_is_none() -> None:
    tried = {(1.0,): {4: 0.0, 5: 0.0}, (2.0,): {4: 1.0, 5: 1.0}, (3.0,): {4: 3.0, 5: -0.5}}
    assert ranked(tried)[0] == (3.0,)
    assert edges((X,), tried) == ()
    assert edges((X,), tried | {(3.0,): {4: 3.0, 5: 2.0}}) == ("x",)


def test_a_choice_that_is_no_number_is_tried_whole() -> None:
    kinds = Dial("y", ("a", "b"))
    assert kinds.around("b") == ("a", "b")
    choice = searched({"one": lambda x, kind: lambda seed: x + (kind == "b")}, y=kinds)[0]["one"]
    assert choice.setting == (10.0 * 2**ZOOMS, "b")
    assert choice.edges == ("x",)


def test_scores_are_those_of_the_studies() -> None:
    make = wheel_learners.LEARNERS["lints"]
    chance, choice = np.random.SeedSequence(3).spawn(2)
    rounds: Any = wheel.WHEELS[wheel.PAPER_WHEEL].sample(80, np.random.default_rng(chance))
    learner = make(5, int(choice.generate_state(1, np.uint64)[0]), wheel.WHEELS[wheel.PAPER_WHEEL].reward_range)
    expected = -float(regret(play(learner, rounds), rounds)[-1])
    assert tuning.wheel_score(make, 3, rounds=80) == pytest.approx(expected)
    tasks, found = {name: LOGGED_TASKS[name] for name in ("iris", "wine")}, []
    candidate = offline.METHODS["o2pl"](0.3, 5.0, 30.0)
    for task in tasks.values():
        logged = task.log(50, np.random.default_rng(np.random.SeedSequence(3).spawn(2)[0]))
        log, model = logged.interactions, candidate(task.n_actions, 0)
        model.fit(*log)
        found.append(np.mean([means[a] for means, a in zip(logged.means, model.predict(logged.contexts), strict=True)]))
    assert tuning.offline_score(tasks, candidate, 3, rounds=50) == pytest.approx(np.mean(found))


def test_the_command_says_what_was_chosen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    one = Tuning({"bowl": TunedMethod((X, Y), bowl)}, lambda make, seed: float(make(seed)), (4, 5), (7, 8))
    monkeypatch.setattr(tuning, "TUNINGS", {"toy": one})
    tuning.main([])
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["toy", "bowl (x, y): (5.0, 0.2), of 35"]
    assert len(said) == 2 + FINALISTS_SHOWN
    assert said[2].endswith("on 4 seeds")
    with pytest.raises(SystemExit, match="found wheels, expected some of toy"):
        tuning.main(["wheels"])
