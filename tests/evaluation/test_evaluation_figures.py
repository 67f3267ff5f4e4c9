from __future__ import annotations

from pathlib import Path

import pytest
from tests.evaluation.cases import log_of, policy

from o2pl.evaluation.evaluate import evaluate
from o2pl.evaluation.evaluation_figures import save_evaluation_figure


@pytest.mark.parametrize("at_any_time", [False, True])
def test_the_picture_is_written_and_the_same_each_time(at_any_time: bool, tmp_path: Path) -> None:
    result = evaluate(log_of(), policy, baseline="logged", at_any_time=at_any_time)
    bad = evaluate(log_of(1), policy)
    for one in (result, bad):
        assert save_evaluation_figure(one, tmp_path / "figure").stat().st_size > 10_000
    assert (tmp_path / "figure.png").exists()
    first = save_evaluation_figure(result, tmp_path / "a.svg").read_bytes()
    assert save_evaluation_figure(result, tmp_path / "b.svg").read_bytes() == first
