from __future__ import annotations

from pathlib import Path

from o2pl.drawing import new_figure, write_figure


def test_the_same_figure_makes_the_same_bytes(tmp_path: Path) -> None:
    for ending, begins in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        paths = [tmp_path / f"{name}{ending}" for name in "ab"]
        for path in paths:
            figure = new_figure(2, 1, wspace=0.1)
            figure.subplots().plot([0, 1], [1, 0])
            write_figure(figure, path)
        first, second = (path.read_bytes() for path in paths)
        assert first == second
        assert first.startswith(begins)
    assert new_figure(2, 1).get_size_inches().tolist() == [2, 1]
