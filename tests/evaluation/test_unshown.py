"""What the log hardly shows, in tables and in flat rows of action sets."""

from __future__ import annotations

import numpy as np
from tests.evaluation.cases import log_of, policy

from o2pl.data.contexts import ActionSets
from o2pl.data.interactions import Interactions
from o2pl.evaluation.reward_models import fit_rewards
from o2pl.evaluation.support import Support
from o2pl.evaluation.unshown import Side, Unshown, hidden_in_unshown, unshown_of, unshown_other_mass
from o2pl.evaluation.values import columns_for_values
from o2pl.learners.targets import as_target

SHOWN = np.array([0.6, 0.39, 0.01])


def sides(log: Interactions, what: object = policy) -> list[Side]:
    target = as_target(what, log)
    return [Side(target, columns_for_values(log, [target], None)[0].inputs)]


def test_entries_beyond_the_limit_are_found_and_counted() -> None:
    log, limit = log_of(600), 30.0
    support = Support(lambda contexts: np.tile(SHOWN, (len(contexts), 1)))
    found = unshown_of(log, sides(log), limit, support)
    assert found is not None
    (rows, width, places, g), *_ = found.parts
    assert (rows.start, width) == (0, 3)
    assert set((places % 3).tolist()) == {2}  # .7/.01 is above 30; the logged actions have their own propensities
    assert (log.actions[places // 3] != 2).all()
    np.testing.assert_allclose(g, 0.7)
    model = fit_rewards(log)
    hidden = hidden_in_unshown(log, found, model, lambda rewards: rewards)
    expected = np.where(log.actions != 2, 0.7, 0.0)
    np.testing.assert_allclose(hidden.more, expected)
    np.testing.assert_allclose(hidden.model, expected * model.all_actions(slice(0, 600))[:, 2])
    assert not hidden.less.any()


def test_policies_without_tables_are_bounded_by_what_is_left() -> None:
    log = log_of(600)
    support = Support(lambda contexts: np.tile(SHOWN, (len(contexts), 1)))
    played = np.full(600, 0.3)
    assert unshown_of(log, sides(log, played), 30.0, support) is None
    assert unshown_of(log, sides(log), 30.0, None) is None
    assert unshown_of(log, [], 30.0, support) == Unshown(())
    other = unshown_other_mass(log, sides(log, played), 1.1, 0.5)
    rest = np.where(1.1 * (1 - log.propensities) < 0.7, 0.7, 0.0)
    np.testing.assert_allclose(other.more, rest)
    np.testing.assert_allclose(other.model, 0.5 * rest)


def test_action_sets_are_flat() -> None:
    g = np.random.default_rng(0)
    sizes = g.integers(2, 5, 200)
    sets = ActionSets(g.normal(size=(sizes.sum(), 2)).astype(np.float32), np.r_[0, sizes.cumsum()])
    actions = (g.random(200) * sizes).astype(int)
    log = Interactions(sets, actions, (g.random(200) < 0.4) * 1.0, 1 / sizes, (0, 1))
    last = np.zeros(sizes.sum())
    last[sets.offsets[1:] - 1] = 1.0
    support = Support(lambda contexts: np.full(len(contexts.values), 1e-4))

    def always_last(contexts: ActionSets) -> np.ndarray:
        table = np.zeros(len(contexts.values))
        table[contexts.offsets[1:] - 1] = 1.0
        return table

    found = unshown_of(log, sides(log, always_last), 1e3, support)
    assert found is not None
    hidden = hidden_in_unshown(log, found, fit_rewards(log), lambda rewards: rewards)
    np.testing.assert_array_equal(hidden.more, (actions != sizes - 1) * 1.0)
