from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import o2pl
from o2pl.explaining.explanation_report import draw_explanation, explanation_heading, explanation_html


@pytest.fixture(scope="module")
def explanation() -> o2pl.Explanation:
    generator = np.random.default_rng(0)
    rows = [
        {"age": float(generator.integers(18, 70)), "city": ["Rome", "<b>Oslo"][k % 2]}
        | {f"x{j}": 0.1 * j * k for j in range(14)}
        for k in range(200)
    ]
    actions = np.array(["news", "sport", "a & b"])[generator.integers(3, size=200)]
    rewards = ((actions == "sport") == [k % 2 == 0 for k in range(200)]).astype(float)
    learner = o2pl.Bandit(random_state=0).fit(rows, actions, rewards, np.full(200, 1 / 3))
    found: o2pl.Explanation = learner.explain(rows[1], action="a & b", against="sport")
    return found


def test_the_text_has_all_there_is(explanation: o2pl.Explanation) -> None:
    text = str(explanation)
    assert text.startswith(explanation_heading(explanation))
    for part in (
        "<b>Oslo",
        "in favour of a & b",
        "average context",
        "difference of the log-odds of a reward",
        "support:",
    ):
        assert part in text
    assert max(len(line) for line in text.splitlines()) <= 110
    assert "exploration" in text
    assert "decisions in this context" in text


def test_the_page_is_well_formed_and_escaped(explanation: o2pl.Explanation) -> None:
    class Balanced(HTMLParser):
        open: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    page = explanation_html(explanation)
    reader = Balanced()
    reader.feed(page)
    assert not reader.open
    assert "<b>Oslo" not in page
    assert "&lt;b&gt;Oslo" in page
    assert page == explanation._repr_html_()
    assert page.isascii()
    assert "&#215;" in page  # ×, of products


def test_the_picture_has_a_bar_for_each_row(explanation: o2pl.Explanation) -> None:
    axes = draw_explanation(explanation, most=3).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0].startswith(explanation.features[0].name)
    assert labels[3].endswith("more")
    widths = [bar.get_width() for bar in axes.patches]
    assert len(widths) == len(labels)
    assert sum(widths) == pytest.approx(explanation.difference + explanation.bonus)
