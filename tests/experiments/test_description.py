from __future__ import annotations

from o2pl.experiments.description import built, described
from o2pl.experiments.gaussian import learners
from o2pl.learners import GaussianO2PL
from o2pl.learners.rivals.crm import SCRM


def test_learners_are_rebuilt_from_their_settings():
    for name, settings in learners().items():
        learner = built(settings)
        assert isinstance(learner, SCRM if name.startswith("scrm") else GaussianO2PL)
        assert described(name, learner) == settings
