"""The claims of `structures` follow its rows; table and figures are made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from structures_table import SETS, rows_of

from o2pl.simulation.worlds.structured import STRUCTURES
from o2pl_reproduction.studies.structures_learners import ENTRANTS
from o2pl_reproduction.studies.structures_study import LABELS, LOGISTIC, RIDGE, STRUCTURES_STUDY


def verdicts(rows: pa.Table) -> dict[str, bool]:
    return {claim.id.partition("/")[2]: claim.outcome == "met" for claim in STRUCTURES_STUDY.claims(rows)}


def measured(rows: pa.Table) -> dict[str, float]:
    return {claim.id.partition("/")[2]: claim.measured.value for claim in STRUCTURES_STUDY.claims(rows)}


def some(share: float, otherwise: float, sets: int) -> Any:
    return np.where(np.arange(SETS) < sets, share, otherwise)


def more_runs(rows: pa.Table) -> pa.Table:
    """The same again as other seeds, four times: so many runs without a false change that there are hardly any."""
    place = rows.schema.get_field_index("seed")
    seeds = np.asarray(rows["seed"])
    return pa.concat_tables([rows.set_column(place, "seed", pa.array(seeds + 10 * more)) for more in range(5)])


def test_everyone_has_a_label() -> None:
    assert set(ENTRANTS) < set(LABELS)


def test_all_bars_can_be_met() -> None:
    found = verdicts(more_runs(rows_of({})))
    assert len(found) == 5 + 7 + 3 + 5 + 1 + 1
    few = {f"one-hot-{rival}-wins" for rival in (LOGISTIC, RIDGE)}  # 14 wins of 14 sets may be luck
    assert {name for name, met in found.items() if not met} == few


def test_one_hot_bars() -> None:
    low = rows_of({("one-hot", "bandit"): 0.7})
    assert measured(low)["one-hot-mean"] == pytest.approx(0.7, abs=0.001)
    assert not verdicts(low)["one-hot-mean"]
    close = verdicts(rows_of({("one-hot", LOGISTIC): some(0.95, 0.8, 3)}))  # 11 wins, 3 losses
    assert not close[f"one-hot-{LOGISTIC}-wins"]
    behind = verdicts(rows_of({("one-hot", RIDGE): 0.95}))
    assert not behind[f"one-hot-{RIDGE}-ahead"]  # sure, on the wrong side


def test_the_best_rival_of_a_structure_decides() -> None:
    rows = rows_of({("rare", "fastcb"): 0.905, ("noisy", "boosted-trees"): 0.903, ("costs", "lints"): 0.9})
    assert measured(rows)["share-rare"] == pytest.approx(-0.005 / 0.8)
    found = verdicts(rows)
    assert not found["share-rare"]
    assert found["share-noisy"]  # within .005: -.00375
    assert measured(rows)["share-costs"] == pytest.approx(0.0, abs=1e-9)
    assert found["share-mean"]
    (claim,) = [each for each in STRUCTURES_STUDY.claims(rows) if each.id == "structures/share-rare"]
    assert LABELS["fastcb"] in claim.claim


def test_the_mean_over_structures_is_tested_over_sets() -> None:
    even = {(structure, "linucb"): some(1.0, 0.8, SETS // 2) for structure in STRUCTURES}
    found = verdicts(rows_of(even))
    assert not found["share-mean"]


def test_bars_of_synthetic_worlds() -> None:
    rows = rows_of({("independent", "vw-bag"): np.array([0.5, 0.5, 0.904, 0.5])})
    assert measured(rows)["independent"] == pytest.approx(-0.004)
    assert not verdicts(rows)["independent"]
    many = verdicts(rows_of({("many actions", RIDGE): 0.91}))
    assert not many[f"many-{RIDGE}"]
    assert many[f"many-{LOGISTIC}"]


def test_bars_of_change() -> None:
    found = verdicts(rows_of({("reversal", "bandit"): 0.86, ("gradual", "bandit"): 0.86}))
    assert not found["reversal"]
    assert found["gradual"]
    lost = rows_of({("none", "bandit-fixed"): 0.912, ("one-hot", "bandit-fixed"): 0.903})
    assert measured(lost)["unchanged-drift"] == pytest.approx(0.25 * 0.012)  # over all rounds
    assert not verdicts(lost)["unchanged-drift"]
    assert not verdicts(lost)["unchanged-one-hot"]
    assert measured(rows_of({}, changes=1))["false-changes"] == 1
    unknown = verdicts(rows_of({}, left_out=("bandit-fixed",), changes=-1))
    assert not {"false-changes", "unchanged-drift", "unchanged-one-hot"} & set(unknown)


def test_cpu_and_wheel() -> None:
    assert measured(rows_of({}, cpu=1.5))["cpu"] == pytest.approx(1.5)
    assert not verdicts(rows_of({}, cpu=1.5))["cpu"]
    wheel = rows_of({("wheel", "bandit"): 0.7, ("wheel", "linucb-quadratic"): 0.8})
    assert measured(wheel)["wheel"] == pytest.approx(1.5, rel=0.01)
    assert not verdicts(wheel)["wheel"]


def test_without_vw_and_with_one_part_alone() -> None:
    plain = rows_of({}, left_out=tuple(name for name in LABELS if name.startswith("vw-")))
    assert "cpu" not in verdicts(plain)
    only = plain.filter(np.asarray(plain["part"]) == "wheel")
    assert list(verdicts(only)) == ["false-changes", "wheel"]
    assert STRUCTURES_STUDY.figures(only) == {}


def test_table_and_figures_are_of_the_rows() -> None:
    rows = rows_of({("rare", "lints"): 0.6})
    lines = {line["learner"]: line for line in STRUCTURES_STUDY.table(rows)}
    assert lines["LinTS"]["share: rare"] == "0.500"
    assert lines["LinTS"]["mean share"] == f"{(5 * 0.75 + 0.5) / 6:.3f}"
    assert lines["LinTS"]["Bandit's gap"].startswith("+0.167")
    assert lines["boosted trees"]["independent"] == ""
    assert lines["Bandit"]["last quarter: reversal"] == "0.900"
    assert lines["Bandit"]["CPU × VW Greedy, one-hot"] == "0.90"
    figures = STRUCTURES_STUDY.figures(rows)
    assert set(figures) == {"shares", "gaps", "drift"}
    (axes,) = figures["gaps"].axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    dots = [line.get_xdata()[0] for line in axes.get_lines() if line.get_marker() == "o"]
    behind = dict(zip(names, dots, strict=True))
    assert (names[-1], behind["Bandit()"]) == ("Bandit()", 0)
    assert behind["LinTS"] == pytest.approx(-float(lines["LinTS"]["Bandit's gap"].split()[0]), abs=5e-4)
    panels = {axes.get_title(loc="left"): axes for axes in figures["shares"].axes}
    assert list(panels) == list(STRUCTURES)
    marks: list[Any] = [line.get_xdata()[0] for line in panels["rare"].get_lines() if line.get_marker() == "o"]
    assert len(marks) == len(ENTRANTS) - 1  # without uniform
    assert min(marks) == pytest.approx(0.5, abs=0.002)
    assert max(marks) == pytest.approx((0.9 - 0.2) / 0.8, abs=0.002)
    courses = figures["drift"].axes
    assert len(courses) == 2
    assert courses[0].get_lines()[0].get_ydata()[-1] == pytest.approx(0.9, abs=0.002)
