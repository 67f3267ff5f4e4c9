from __future__ import annotations

import base64
import re

from tests.demo.steps import IMPROVED, JUDGED, ONLINE, SERVED

from o2pl.demo.online import BANDIT, UNIFORM, Online
from o2pl.demo.page import page


def test_the_page_says_what_the_steps_found_and_needs_nothing_from_elsewhere() -> None:
    text = page(ONLINE, JUDGED, IMPROVED, SERVED, 41.7)
    for said in (
        "in 42 seconds",
        "Bandit() earned 1.00 per round; the best rival, Vowpal Wabbit, 0.50",
        "The truth lies in 1 of 2 intervals",
        "3 logs: 2 new policies deployed, 0 of them worse than the incumbent",
        "1 of 2 promises were kept. Mean gain +0.050.",
        "Importance weights alone gain -0.020 and make 2 of 3 worse.",
        "Clicks per reader rose from 0.10 to 0.40; the best possible is 0.50",
        "A is &lt;better&gt; &amp; sure",
        "What next",
    ):
        assert said in text, said
    assert not re.findall(r'(?:src|href|srcset)="(?!data:)', text)
    pictures = re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", text)
    assert len(pictures) == 8  # four, each for light pages and for dark ones
    light, dark = (base64.b64decode(each) for each in (pictures[1], pictures[0]))
    assert b"#1c1c1c" in light
    assert b"#e8e8e8" in dark
    assert text.index("<picture>") < text.index("What next")


def test_what_is_not_installed_is_named() -> None:
    found = Online({name: ONLINE.rewards[name] for name in (BANDIT, UNIFORM)} | {"LinUCB": ONLINE.rewards[UNIFORM]})
    text = page(found, JUDGED, IMPROVED, None, 1.0)
    assert "pip install &#x27;o2pl[serve]&#x27;" in text
    assert "Vowpal Wabbit is not installed here" in text
    assert text.count("<picture>") == 3
