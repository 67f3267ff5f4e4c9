"""The verdict: four words, one place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import o2pl
from o2pl.evaluation.judgement import Judgement, deploying, judge


def judged(low: float, high: float, **changes: Any) -> Judgement:
    given: dict[str, Any] = {"delta": 0.05, "kind": "normal, with skew", "rows": 1000, "effective": 300.0} | changes
    return judge("mine", "theirs", (low + high) / 2, low, high, **given)


def test_the_four_verdicts() -> None:
    assert str(judged(0.1, 0.3)) == "mine is better than theirs, with 95% confidence"
    assert str(judged(-0.3, -0.1)) == "mine is worse than theirs, with 95% confidence"
    assert str(judged(-0.1, 0.1)) == "mine and theirs cannot be distinguished with this log"
    unsure = judged(0.1, 0.3, doubt="the log is deterministic")
    assert (unsure.verdict, str(unsure)) == ("cannot be judged", "no conclusion about mine: the log is deterministic")
    assert "at any time" in str(judged(0.1, 0.3, kind="betting, at any time"))
    assert "hardly shows 30%" in str(judged(-0.1, 0.3, unsupported=0.3))
    assert "effective sample size of 4" in str(judged(-0.1, 0.3, effective=4.0))
    assert judged(-0.1, 0.3, tolerance=0.2).better
    assert judged(0.1, 0.3, unsupported=0.3).better  # the interval counts what is hidden at its worst already
    with pytest.raises(TypeError, match="four verdicts"):
        bool(judged(0.1, 0.3))


def test_deploying() -> None:
    assert deploying(judged(0.1, 0.3))
    assert "appears to be worse" in deploying(judged(-0.3, 0.1)).reason
    assert "above -0.1 with confidence: more rows" in deploying(judged(-0.2, 0.4), 0.1).reason
    assert "hardly shows 30%" in deploying(judged(-0.1, 0.3, unsupported=0.3)).reason


def test_the_word_is_formed_in_one_file() -> None:
    source = Path(o2pl.__file__).parent
    folders = ("evaluation", "fitting", "learners", "serving", "formats", "adapters", "demo")
    formed = re.compile(r"""["'`]better["'`]|better (than \{|than \$)|(better|worse), with \d""")
    files = [path for folder in folders for kind in ("*.py", "*.js") for path in (source / folder).rglob(kind)]
    assert len([path for path in files if path.suffix == ".js"]) > 1
    assert [path.name for path in files if formed.search(path.read_text())] == ["judgement.py"]
