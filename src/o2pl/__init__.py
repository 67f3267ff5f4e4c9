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

from typing import TYPE_CHECKING

from o2pl.lazily import lazily_imported
from o2pl.version import __version__

if TYPE_CHECKING:
    from o2pl.data.contexts import ActionSets, SparseRows
    from o2pl.data.decisions import Decision, ListDecision
    from o2pl.data.interactions import Interactions
    from o2pl.data.log import Log
    from o2pl.data.many_decisions import Decisions
    from o2pl.data.offers import Offer
    from o2pl.errors import InvalidInput, MissingExtra
    from o2pl.evaluation.candidates import Candidates
    from o2pl.evaluation.evaluate import evaluate
    from o2pl.evaluation.judgement import DeployVerdict, Judgement
    from o2pl.evaluation.list_evaluation import ListEvaluation, evaluate_lists
    from o2pl.evaluation.many_actions import ManyActions, evaluate_many_actions
    from o2pl.evaluation.metrics import Metric, Metrics
    from o2pl.evaluation.propensities import estimate_propensities
    from o2pl.evaluation.quantiles import Distribution, evaluate_quantiles
    from o2pl.evaluation.results import Evaluation
    from o2pl.evaluation.sequences import ConfidenceSequence, confidence_sequence
    from o2pl.features import Hashed
    from o2pl.fitting import Fit, fit
    from o2pl.formats import describe, read_log
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
    from o2pl.policies.sampling import CountBonus, UniformExploration

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
    "Decisions",
    "DeployVerdict",
    "Distribution",
    "Evaluation",
    "Exact",
    "Explanation",
    "Fit",
    "GaussianO2PL",
    "Geometric",
    "Hashed",
    "Interactions",
    "InvalidInput",
    "Judgement",
    "ListDecision",
    "ListEvaluation",
    "Log",
    "ManyActions",
    "Member",
    "Metric",
    "Metrics",
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
    "evaluate_many_actions",
    "evaluate_quantiles",
    "fit",
    "load",
    "read_log",
]

# A name is imported when it is first used: half of `import o2pl` would be for names that a program does not use.
__getattr__, __dir__ = lazily_imported(
    __name__,
    {
        "o2pl.data.offers": "Offer",
        "o2pl.data.decisions": "Decision ListDecision",
        "o2pl.data.many_decisions": "Decisions",
        "o2pl.errors": "InvalidInput MissingExtra",
        "o2pl.evaluation.candidates": "Candidates",
        "o2pl.evaluation.evaluate": "evaluate",
        "o2pl.evaluation.list_evaluation": "ListEvaluation evaluate_lists",
        "o2pl.evaluation.many_actions": "ManyActions evaluate_many_actions",
        "o2pl.evaluation.metrics": "Metric Metrics",
        "o2pl.evaluation.propensities": "estimate_propensities",
        "o2pl.evaluation.quantiles": "Distribution evaluate_quantiles",
        "o2pl.evaluation.results": "Evaluation",
        "o2pl.evaluation.sequences": "ConfidenceSequence confidence_sequence",
        "o2pl.features": "Hashed",
        "o2pl.fitting": "Fit fit",
        "o2pl.formats": "describe read_log",
        "o2pl.data.interactions": "Interactions",
        "o2pl.learners": (
            "O2PL Bandit Change ContinuousBandit Decider Exact Explanation GaussianO2PL Geometric Member Replay Run"
            " SafeImprovement load"
        ),
        "o2pl.evaluation.judgement": "DeployVerdict Judgement",
        "o2pl.data.log": "Log",
        "o2pl.policies.sampling": "CountBonus UniformExploration",
        "o2pl.data.contexts": "ActionSets SparseRows",
    },
)
