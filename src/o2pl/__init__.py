"""Online pessimistic policy learning for contextual bandits.

Data flows through the package's folders in this order:

    context → features → policy → Decision(action, propensity)
            → reward → Interactions
            → objective (clipped weights + pessimistic penalty) → oracle → new parameters
            → evaluation (value with confidence)

The main classes are `Bandit` and `O2PL` (discrete actions), `ContinuousBandit` and `GaussianO2PL` (real-valued
actions). Their methods are `act`, `update`, `partial_fit`, `fit`, `predict`, `run` and `save`; `load` reads a saved
learner. `Interactions` is a log; `read_log` reads one from a file. `fit` learns from a log with several learners and
keeps the best. `evaluate` estimates the value of a policy on a log (off-policy evaluation). `confidence_sequence` gives
anytime-valid confidence intervals. `SafeImprovement` tests whether a log supports a better policy.
"""

from o2pl.ahead import warm_up
from o2pl.contexts import Offer
from o2pl.decisions import Decision, ListDecision
from o2pl.errors import InvalidInput, MissingExtra
from o2pl.evaluation.candidates import Candidates
from o2pl.evaluation.evaluate import evaluate
from o2pl.evaluation.lists import ListEvaluation, evaluate_lists
from o2pl.evaluation.propensities import estimate_propensities
from o2pl.evaluation.results import Evaluation
from o2pl.evaluation.sequences import ConfidenceSequence, confidence_sequence
from o2pl.features import Hashed
from o2pl.fitting import Fit, fit
from o2pl.formats import describe, read_log
from o2pl.interactions import Interactions
from o2pl.learners import (
    O2PL,
    Bandit,
    Change,
    ContinuousBandit,
    Decider,
    Exact,
    Explanation,
    GaussianO2PL,
    Geometric,
    Member,
    Replay,
    Run,
    SafeImprovement,
    load,
)
from o2pl.learners.gate import DeployVerdict
from o2pl.log import Log
from o2pl.policies.sampling import CountBonus, UniformExploration
from o2pl.rows import ActionSets, SparseRows
from o2pl.version import __version__

__all__ = [
    "O2PL",
    "ActionSets",
    "Bandit",
    "Candidates",
    "Change",
    "ConfidenceSequence",
    "ContinuousBandit",
    "CountBonus",
    "Decider",
    "Decision",
    "DeployVerdict",
    "Evaluation",
    "Exact",
    "Explanation",
    "Fit",
    "GaussianO2PL",
    "Geometric",
    "Hashed",
    "Interactions",
    "InvalidInput",
    "ListDecision",
    "ListEvaluation",
    "Log",
    "Member",
    "MissingExtra",
    "Offer",
    "Replay",
    "Run",
    "SafeImprovement",
    "SparseRows",
    "UniformExploration",
    "__version__",
    "confidence_sequence",
    "describe",
    "estimate_propensities",
    "evaluate",
    "evaluate_lists",
    "fit",
    "load",
    "read_log",
    "warm_up",
]
