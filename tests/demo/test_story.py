from __future__ import annotations

import re
from pathlib import Path

from o2pl.demo.story import StorySize, tell_story


def test_the_whole_story_at_a_small_size(tmp_path: Path) -> None:
    said: list[str] = []
    path = tell_story(tmp_path / "new" / "folder", said.append, StorySize(rounds=200, seeds=1, logs=(120,), calls=40))
    assert path == tmp_path / "new" / "folder" / "index.html"
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(r'<section class="card">', text)) == 4
    steps = [what[:3] for what in said]
    assert sorted(steps[:-1]) == steps[:-1]
    assert set(steps[:-1]) == {"1/4", "2/4", "3/4", "4/4"}
    assert said[-1] == "writing the page"
