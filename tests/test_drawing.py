from __future__ import annotations

from pathlib import Path

import pytest

from o2pl import InvalidInput
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


def test_a_figure_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = new_figure(2, 1)
    with pytest.raises(InvalidInput, match=r"figure: found the name 'a.xyz', expected one that ends in .png or .svg"):
        write_figure(figure, tmp_path / "a.xyz")

    def half(path: Path, **_: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure, "savefig", half)
    with pytest.raises(OSError, match="No space left"):
        write_figure(figure, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
