"""The verdict: four words, one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from o2pl.evaluation import judgement
from o2pl.evaluation.judgement import (
    Judgement,
    judge,
    judged_among_candidates,
    judgement_advice,
    judgement_of_candidate,
    judgement_on_deploying,
)


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
    assert "exploration=0.05 keeps each of K actions at 0.05/K" in str(judged(-0.1, 0.3, unsupported=0.3))
    assert "about 2,000 K rows then show" in str(judged(-0.1, 0.3, unsupported=0.3))  # 30 times 0.3 of them at 0.05/K
    assert judged(-0.1, 0.3, tolerance=0.2).better
    assert judged(0.1, 0.3, unsupported=0.3).better  # the interval counts what is hidden at its worst already
    with pytest.raises(TypeError, match="four verdicts"):
        bool(judged(0.1, 0.3))


def test_deploying() -> None:
    assert judgement_on_deploying(judged(0.1, 0.3))
    assert "appears to be worse" in judgement_on_deploying(judged(-0.3, 0.1)).reason
    assert "above -0.1 with confidence: more rows" in judgement_on_deploying(judged(-0.2, 0.4), 0.1).reason
    assert "hardly shows 30%" in judgement_on_deploying(judged(-0.1, 0.3, unsupported=0.3)).reason


# -- one place

PACKAGE = Path(judgement.__file__).parents[1]
VERDICTS = re.compile(
    r"(?<!-)\b(better|worse|the best of|is best|be the best|no conclusion|cannot be judged|cannot be distinguished"
    r"|safe to deploy|deploy it)\b"
)
FACTS = ("demo", "simulation")  # compare what is known, and judge nothing


def _said(tree: ast.Module) -> Iterator[ast.Constant]:
    """Return the strings of a module that are neither documentation nor help."""
    quiet: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            quiet.add(id(body[0].value))
        if isinstance(node, ast.keyword) and node.arg == "help":
            quiet.update(id(part) for part in ast.walk(node.value))
    quiet.update(id(node.value) for node in tree.body if isinstance(node, ast.Assign))  # examples of a command
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet:
            yield node


def test_verdicts_are_formed_in_one_file() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}, line {node.lineno}: {node.value!s}"
        for path in PACKAGE.rglob("*.py")
        if path != Path(judgement.__file__) and path.relative_to(PACKAGE).parts[0] not in FACTS
        for node in _said(ast.parse(path.read_text("utf-8")))
        if VERDICTS.search(node.value)
    }
    assert not found
    assert any(VERDICTS.search(node.value) for node in _said(ast.parse(Path(judgement.__file__).read_text("utf-8"))))


def test_the_page_forms_no_verdict() -> None:
    scripts = [path.read_text("utf-8") for path in PACKAGE.rglob("*.js")]
    assert len(scripts) > 1
    assert not any(VERDICTS.search(script) for script in scripts)


def test_who_makes_a_judgement_asks_judge() -> None:
    made = re.compile(r"\b(Judgement|DeployVerdict)\(")
    files = [path.name for path in PACKAGE.rglob("*.py") if made.search(path.read_text("utf-8"))]
    assert files == ["judgement.py"]


def test_what_several_candidates_are_told() -> None:
    ahead, open_ = judged(0.1, 0.4), judged(-0.2, 0.4)
    assert judgement_of_candidate(None, None) == "leads"
    assert judgement_of_candidate(ahead, 1200) == "worse with confidence since row 1,200"
    assert judgement_of_candidate(open_, None) == "may be the best"
    assert judgement_of_candidate(judged(-0.2, 0.4, doubt="rows repeat"), None) == "cannot be judged"
    names = [f"p{k}" for k in range(7)]
    assert judged_among_candidates(names[:1], 3, 0.95, "", "") == "p0 is the best of 3, with 95% confidence at any time"
    assert judged_among_candidates(names, 9, 0.975, "", "wait") == (
        "p0, p1, p2, p3, p4 and 2 more may each be the best; 2 worse with 97.5% confidence at any time; wait"
    )
    assert judged_among_candidates(names, 9, 0.975, "rows repeat", "wait") == "no conclusion: rows repeat"
    assert judgement_advice("it is so", 0.1) == "it is so, by at least 0.1000: deploy it"
    assert judgement_advice("it is open", None, "It stays") == "it is open: keep the incumbent. It stays"
