from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.cases import log_of, policy

from o2pl.evaluation.evaluate import evaluate


@pytest.mark.parametrize("at_any_time", [False, True])
def test_text_and_page(at_any_time: bool) -> None:
    result = evaluate(log_of(), policy, baseline="logged", at_any_time=at_any_time)
    text = str(result)
    for word in ("estimator", "dr-shrinkage", "difference", "effective sample size", "verdict: policy is better"):
        assert word in text
    page = result._repr_html_()
    assert page.count("<tr") == len(result.estimates) + 3
    assert "nan" not in page
    bad = evaluate(log_of(1), policy)
    assert "∞" in bad._repr_html_()


def test_names_are_escaped() -> None:
    log = log_of(100, action_names=("<b>", "x", "y"), actions=np.r_[np.ones(100, int)])
    assert "<b>" not in evaluate(log, policy)._repr_html_().replace("&lt;b&gt;", "")


def test_which_intervals_are_approximate_is_said() -> None:
    log = log_of(400)
    assert "intervals of dr, the baseline and the difference: 95%, fixed sample; the others are approximate" in str(
        evaluate(log, policy, baseline="logged")
    )
    assert "intervals of any-time: 95%, anytime-valid; the others are approximate" in str(
        evaluate(log, policy, at_any_time=True)
    )
