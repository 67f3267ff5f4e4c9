"""All experiments, by name."""

from __future__ import annotations

from o2pl.experiments.bakeoff import BAKEOFF_TUNING
from o2pl.experiments.classification import CLASSIFICATION
from o2pl.experiments.experiment import Experiment
from o2pl.experiments.neural import NEURAL
from o2pl.experiments.prices import PRICES_TUNING
from o2pl.experiments.structures import STRUCTURES_TUNING
from o2pl.experiments.studies import STUDIES

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        CLASSIFICATION,
        BAKEOFF_TUNING,
        STRUCTURES_TUNING,
        PRICES_TUNING,
        NEURAL,
        *(study.experiment for study in STUDIES),
    )
}
