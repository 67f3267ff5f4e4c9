from __future__ import annotations

from o2pl.learners import Bandit
from o2pl.simulation.description import OF_THE_RUN, built, described, needed_extra
from o2pl.simulation.rivals.bootstrap import BootstrapEnsemble
from o2pl.simulation.rivals.inverse_gap import InverseGap
from o2pl.simulation.rivals.linear import LinUCB
from o2pl.simulation.rivals.trees import BoostedTrees
from o2pl.simulation.rivals.vw import VowpalWabbit


def test_a_learner_is_told_only_what_it_asks_for() -> None:
    known = {"n_actions": 3, "reward_range": (-1.0, 2.0), "random_state": 5}
    linucb = built(described("linucb", LinUCB(2), OF_THE_RUN), **known)
    assert (linucb.n_actions, linucb.random_state) == (3, 5)
    assert not hasattr(linucb, "reward_range")
    for learner in (Bandit(2), InverseGap(2, gamma=7.0), BootstrapEnsemble(2), BoostedTrees(2, trees=9)):
        again = built(described("learner", learner, OF_THE_RUN), **known)
        assert again.get_params() == {**learner.get_params(), **known}
    assert [needed_extra(each) for each in (linucb, BoostedTrees(2), VowpalWabbit(2))] == [None, "experiments", "vw"]
