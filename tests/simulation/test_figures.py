from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from o2pl.simulation import figures

LABELS = {"o2pl": "O2PL", "linear": "not in the rows", "uniform": "uniform"}


def rows_of_two_seeds() -> pa.Table:
    return pa.table(
        {
            "unit": [0, 0, 1, 1, 2, 2, 3, 3],
            "world": ["digits"] * 8,
            "learner": ["o2pl", "o2pl", "uniform", "uniform"] * 2,
            "round": [1, 2] * 4,
            "mean_reward": [0.1, 0.5, 0.2, 0.1, 0.3, 0.7, 0.0, 0.1],
        }
    )


def test_the_picture_shows_the_stored_rows(tmp_path: Path) -> None:
    figure = figures.figure_of_curves(rows_of_two_seeds(), "mean_reward", LABELS, title="t", ylabel="y", top=1.0)
    lines = {tuple(line.get_ydata()) for line in figure.axes[0].get_lines()}
    assert {tuple(np.round(line, 9)) for line in lines} == {(0.2, 0.6), (0.1, 0.1)}
    assert [text.get_text() for text in figure.axes[0].texts] == [LABELS["o2pl"], LABELS["uniform"]]
    first = figures.save_figure(figure, tmp_path / "first")
    again = figures.figure_of_curves(rows_of_two_seeds(), "mean_reward", LABELS, title="t", ylabel="y", top=1.0)
    assert [path.name for path in first] == ["first.png", "first.svg"]
    assert [path.read_bytes() for path in first] == [
        p.read_bytes() for p in figures.save_figure(again, tmp_path / "again")
    ]
