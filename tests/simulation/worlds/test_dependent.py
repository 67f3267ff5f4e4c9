from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from o2pl import InvalidInput
from o2pl.simulation.worlds import DependentArms

from .checks import LEVEL, assert_rate_is


def test_chains_stay_with_their_probability() -> None:
    sample = DependentArms(30, 0.25, 0.9).draw(4001, np.random.default_rng(0))
    states = np.round((sample.values - sample.risks) / sample.spreads)
    np.testing.assert_allclose(sample.values, sample.risks + sample.spreads * states)
    assert set(np.unique(states)) == {-1, 1}
    for k, correlation in enumerate(sample.correlations):
        assert_rate_is(states[1:, k] == states[:-1, k], (1 + correlation) / 2, f"arm {k}")


def test_means_are_the_risks() -> None:
    """Σ z² over the arms; the mean of n states has variance (1 + 2 Σ_l (1 - l/n) χ^l)/n."""
    n = 3000
    sample = DependentArms(200).draw(n, np.random.default_rng(1))
    lags = np.arange(1, n)[:, None]
    variance = (1 + 2 * ((1 - lags / n) * sample.correlations**lags).sum(axis=0)) / n
    z = (sample.values.mean(axis=0) - sample.risks) / (sample.spreads * np.sqrt(variance))
    assert LEVEL < chi2(len(z)).cdf(float(z @ z)) < 1 - LEVEL


def test_the_arms_are_drawn_as_stated() -> None:
    arms = DependentArms(2000, 0.2, 0.5)
    sample = arms.draw(1, np.random.default_rng(2))
    for values, low, high in ((sample.risks, 0.2, 0.8), (sample.spreads, 0, 0.2), (sample.correlations, 0, 0.5)):
        assert kstest(values, "uniform", args=(low, high - low)).pvalue > LEVEL
    assert_rate_is(sample.values[0] > sample.risks, 0.5, "first state")
    again = arms.draw(1, np.random.default_rng(2))
    np.testing.assert_array_equal(sample.values, again.values)
    assert sample.excess_risk(int(sample.risks.argmin())) == 0
    assert sample.excess_risk(3) == pytest.approx(sample.risks[3] - sample.risks.min())


@pytest.mark.parametrize("wrong", [{"arms": 0}, {"bound": 0.6}, {"max_correlation": 1.0}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        DependentArms(**wrong)
