"""The studies: those of the paper in its order, then our own."""

from __future__ import annotations

from o2pl.experiments.bakeoff_study import BAKEOFF_STUDY
from o2pl.experiments.dependence import DEPENDENCE
from o2pl.experiments.deployed import DEPLOYED
from o2pl.experiments.exponent_study import EXPONENT
from o2pl.experiments.gaussian import GAUSSIAN
from o2pl.experiments.offline_multiclass import OFFLINE_MULTICLASS
from o2pl.experiments.offline_synthetic import OFFLINE_SYNTHETIC
from o2pl.experiments.overlap import OVERLAP
from o2pl.experiments.overlap_price import OVERLAP_PRICE
from o2pl.experiments.prices import PRICES
from o2pl.experiments.rates_study import RATES
from o2pl.experiments.safe_improvement_study import SAFE_IMPROVEMENT
from o2pl.experiments.schedules import COSTS_STUDY, SCHEDULES_STUDY
from o2pl.experiments.scrm_table_study import SCRM_TABLE
from o2pl.experiments.starts import STARTS_STUDY
from o2pl.experiments.structures_study import STRUCTURES_STUDY
from o2pl.experiments.study import Study
from o2pl.experiments.theory_study import THEORY
from o2pl.experiments.wheel import WHEEL_STUDY

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
    DEPLOYED,
    PRICES,
)
