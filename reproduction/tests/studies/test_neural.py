from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from o2pl.simulation.experiment import Options
from o2pl_reproduction.registry import EXPERIMENTS
from o2pl_reproduction.studies import neural
from o2pl_reproduction.studies.neural import LEARNERS, NEURAL, table


def test_it_is_registered_and_a_unit_runs() -> None:
    assert EXPERIMENTS["neural"] is NEURAL
    units = NEURAL.units(Options(rounds=60, seeds=[0]))
    assert [unit.learner["name"] for unit in units] == list(LEARNERS)
    columns = NEURAL.run(units[0])
    assert columns["round"][-1] == 60
    assert 0 <= columns["mean_reward"][-1] <= 1


def test_the_table_has_leads_over_the_default() -> None:
    made: list[Any] = []
    for name, shift in zip(LEARNERS, (0.0, 0.1, -0.2, 0.05, -0.3), strict=True):
        for seed, base in enumerate((0.5, 0.6, 0.7)):
            row = {"world": "waves", "learner": name, "unit": 3 * len(made) + seed, "mean_reward": base + shift}
            made += [{**row, "round": at} for at in (1, 2)]
    lines = table(pa.Table.from_pylist(made))
    assert lines[2] == "| bandit | 0.600 |"
    assert lines[3] == "| bandit-neural | 0.700 (+0.100 ± 0.000, 3 seeds) |"
    assert np.isclose(float(lines[4].split("|")[2].split()[0]), 0.4)


def test_the_page_has_the_table_of_the_rows_that_were_recorded() -> None:
    rows = json.loads(Path(neural.__file__).with_name("neural_rows.json").read_text())
    page = (Path(__file__).parents[3] / "docs" / "neural.md").read_text()
    assert "\n".join(table(pa.Table.from_pylist(rows))) in page
