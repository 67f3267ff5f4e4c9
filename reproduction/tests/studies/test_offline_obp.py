"""OBP's stored rows beside ours: paired by seed, only where the logs are as long, and claims that follow the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from offline_rows import rows_of

from o2pl.simulation.worlds import LOGGED_TASKS
from o2pl_reproduction.studies import offline_obp
from o2pl_reproduction.studies.offline_multiclass import SETS
from o2pl_reproduction.studies.offline_synthetic import OFFLINE_SYNTHETIC, TASKS
from o2pl_reproduction.studies.overlap import FLOORS, world

STUDY = "offline-synthetic"


def stored(seeds: int = 6, ours: float = 0.01, theirs: float = 0.02) -> dict[str, Any]:
    """Each learner is worth .4, a little more in each later seed; estimates are off by this much, in turns."""
    truth = [0.5 + 0.01 * seed for seed in range(seeds)]
    signs = [(-1) ** seed for seed in range(seeds)]

    def estimates(error: float, of_ips: float) -> dict[str, list[float]]:
        off = {"ips": of_ips, "snips": of_ips, "dm": error, "dr": error}
        return {name: [t + sign * each for t, sign in zip(truth, signs, strict=True)] for name, each in off.items()}

    of_target = {"truth": truth, "o2pl": estimates(ours, 0.03), "obp": estimates(theirs, 0.03)}
    one = {
        "values": {name: [0.4 + 0.001 * seed for seed in range(seeds)] for name in offline_obp.LABELS},
        "estimates": dict.fromkeys(offline_obp.TARGETS, of_target),
    }
    return {"studies": {STUDY: {"rounds": 2000, "worlds": dict.fromkeys(TASKS, one)}}}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found = stored()
    monkeypatch.setattr(offline_obp, "_stored", lambda: found)
    return found


def claims(values: dict[str, float], seeds: int = 6, rounds: int = 2000) -> dict[str, Any]:
    rows = rows_of(OFFLINE_SYNTHETIC, values, seeds, rounds)
    return {each.id.partition("/")[2]: each for each in offline_obp.claims(STUDY, rows, "On every task")}


@pytest.mark.usefixtures("kept")
def test_leads_are_paired_by_seed() -> None:
    rows = rows_of(OFFLINE_SYNTHETIC, {"o2pl": 0.6}, rounds=2000)
    found = offline_obp.leads(STUDY, rows, "o2pl", "obp-ipw")
    assert set(found) == set(TASKS)
    assert found["logistic"].shape == (6, 1)
    np.testing.assert_allclose(found["logistic"], 0.2)  # the seeds' own part cancels
    later = rows.filter(np.asarray(rows["seed"]) >= 4)
    np.testing.assert_allclose(offline_obp.leads(STUDY, later, "o2pl", "obp-ipw")["logistic"], 0.2)
    assert len(offline_obp.values(STUDY, later)["OBP's IPWLearner, logistic"]["logistic"]) == 2


@pytest.mark.usefixtures("kept")
def test_verdicts_follow_the_rows() -> None:
    found = claims({"o2pl": 0.6, "o2pl-paper": 0.3, "ipw-csc": 0.395, "dm-additive": 0.3})
    assert found["beats-obp-ipw"].verdict == "holds for our recipe, not for the paper's"
    assert found["beats-obp-q-forest"].verdict == "our own question: yes"
    assert found["ipw-csc-not-weaker-than-obp"].verdict == "our own question: yes"  # .005 below
    assert found["dm-additive-not-weaker-than-obp"].verdict == "our own question: no"
    assert found["obp-same-ips-uniform"].verdict == "our own question: yes"
    assert found["obp-dr-learned"].measured.value == pytest.approx(0.5)
    assert found["obp-dr-learned"].verdict == "our own question: yes"
    lost = claims({"o2pl": 0.6, "o2pl@misspecified": 0.35})
    assert lost["beats-obp-ipw"].verdict == "does not hold"


def test_estimates_that_are_off_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = stored(ours=0.03)
    found["studies"][STUDY]["worlds"]["logistic"] = stored()["studies"][STUDY]["worlds"]["logistic"]
    gone = found["studies"][STUDY]["worlds"]["logistic"]["estimates"]["uniform"]
    gone["o2pl"] = gone["o2pl"] | {"ips": [each + 0.01 for each in gone["o2pl"]["ips"]]}
    monkeypatch.setattr(offline_obp, "_stored", lambda: found)
    made = claims({})
    assert made["obp-same-ips-uniform"].verdict == "our own question: no"
    assert made["obp-dr-uniform"].verdict == "our own question: no"


@pytest.mark.usefixtures("kept")
def test_logs_of_another_length_are_not_compared() -> None:
    assert claims({}, rounds=40) == {}
    assert offline_obp.figures(STUDY, rows_of(OFFLINE_SYNTHETIC, {}, rounds=40)) == {}


@pytest.mark.usefixtures("kept")
def test_the_figure_has_a_panel_for_each_policy() -> None:
    (figure,) = offline_obp.figures(STUDY, rows_of(OFFLINE_SYNTHETIC, {}, rounds=2000)).values()
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(offline_obp.TARGETS.values())
    heights: list[Any] = [line.get_ydata()[0] for line in figure.axes[0].lines if len(line.get_ydata()) == 1]
    assert max(heights) == pytest.approx(0.03)  # of IPS


def test_what_is_stored_is_the_full_size_of_every_study() -> None:
    found = offline_obp._stored()
    assert found["obp"] == "0.5.7"
    worlds = {
        "offline-synthetic": set(TASKS),
        "offline-multiclass": set(SETS),
        "overlap": {world(floor) for floor in FLOORS},
    }
    assert {study: set(kept["worlds"]) for study, kept in found["studies"].items()} == worlds
    for kept in found["studies"].values():
        assert kept["rounds"] == 2000
        for each in kept["worlds"].values():
            assert {"obp-ipw", "obp-q"} <= set(each["values"]) <= set(offline_obp.LABELS)
            assert {len(values) for values in each["values"].values()} == {20}


def test_what_is_stored_is_of_the_logs_that_the_study_draws() -> None:
    seed = 3
    chance, _ = np.random.SeedSequence(seed).spawn(2)
    logged = LOGGED_TASKS["iris"].log(2000, np.random.default_rng(chance))
    kept = offline_obp._stored()["studies"]["offline-multiclass"]["worlds"]["iris"]["estimates"]["uniform"]
    _, _, rewards, propensities = logged.interactions
    assert kept["obp"]["ips"][seed] == pytest.approx(float(np.mean(rewards / 3 / propensities)), abs=1e-6)
    assert kept["truth"][seed] == pytest.approx(logged.value(np.full(logged.means.shape, 1 / 3)), abs=1e-6)
