"""All experiments by name, and the studies: those of the paper in its order, then our own."""

from __future__ import annotations

from o2pl.simulation.experiment import Experiment
from o2pl_reproduction.claims.study import Study
from o2pl_reproduction.studies.bakeoff import BAKEOFF_TUNING
from o2pl_reproduction.studies.bakeoff_study import BAKEOFF_STUDY
from o2pl_reproduction.studies.classification import CLASSIFICATION
from o2pl_reproduction.studies.dependence import DEPENDENCE
from o2pl_reproduction.studies.deployed import DEPLOYED
from o2pl_reproduction.studies.exploration import EXPLORATION_STUDY
from o2pl_reproduction.studies.exponent_study import EXPONENT
from o2pl_reproduction.studies.gaussian import GAUSSIAN
from o2pl_reproduction.studies.neural import NEURAL
from o2pl_reproduction.studies.offline_multiclass import OFFLINE_MULTICLASS
from o2pl_reproduction.studies.offline_synthetic import OFFLINE_SYNTHETIC
from o2pl_reproduction.studies.overlap import OVERLAP
from o2pl_reproduction.studies.overlap_price import OVERLAP_PRICE
from o2pl_reproduction.studies.prices import PRICES, PRICES_TUNING
from o2pl_reproduction.studies.rates_study import RATES
from o2pl_reproduction.studies.safe_improvement_study import SAFE_IMPROVEMENT
from o2pl_reproduction.studies.schedules import COSTS_STUDY, SCHEDULES_STUDY
from o2pl_reproduction.studies.scrm_table_study import SCRM_TABLE
from o2pl_reproduction.studies.starts import STARTS_STUDY
from o2pl_reproduction.studies.structures import STRUCTURES_TUNING
from o2pl_reproduction.studies.structures_study import STRUCTURES_STUDY
from o2pl_reproduction.studies.theory_study import THEORY
from o2pl_reproduction.studies.wheel import WHEEL_STUDY

STUDIES: tuple[Study, ...] = (
    DEPENDENCE,
    BAKEOFF_STUDY,
    WHEEL_STUDY,
    EXPONENT,
    STARTS_STUDY,
    OVERLAP,
    OFFLINE_SYNTHETIC,
    OFFLINE_MULTICLASS,
    GAUSSIAN,
    SCRM_TABLE,
    THEORY,
    RATES,
    SAFE_IMPROVEMENT,
    SCHEDULES_STUDY,
    COSTS_STUDY,
    STRUCTURES_STUDY,
    OVERLAP_PRICE,
    EXPLORATION_STUDY,
    DEPLOYED,
    PRICES,
)

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
