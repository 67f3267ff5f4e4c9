from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.evaluation.cases import log_of, policy

from o2pl import evaluate
from o2pl.evaluation.candidates_report import candidates_text, draw_candidates
from o2pl.evaluation.evaluation_figures import save_evaluation_figure


def test_the_table_and_the_figure_show_every_candidate(tmp_path: Path) -> None:
    found = evaluate(log_of(2000), {"mine": policy, "uniform": "uniform"}, segments=np.arange(2000) % 2)
    text = candidates_text(found)
    for words in ("mine", "uniform", "leads", "behind", "verdict:", "1 (n = 1,000): "):
        assert words in text
    figure = draw_candidates(found)
    assert len([axes for axes in figure.axes if axes.get_visible()]) == 3
    assert "2,000 rows, " in figure.axes[0].get_title(loc="left")
    assert save_evaluation_figure(found, tmp_path / "several.png").stat().st_size > 5000
    many = evaluate(log_of(300), {f"p{k}": policy for k in range(40)})
    assert "10 candidates with lower values are not shown" in candidates_text(many)
