"""Online pessimistic policy learning for contextual bandits.

The path of the data, and of the folders:

    context → features → policy → Decision(action, propensity)
            → reward → Interactions in the Log
            → objective (clipped weights + pessimistic penalty) → oracle → new parameters
            → evaluation

`O2PL` (discrete actions) and `GaussianO2PL` (a real-valued one) are the objects to hold: `act`, `update`,
`partial_fit`, `fit`, `predict`, `run`, `save`; `load` brings one back.
"""

from o2pl.interactions import ActionSets, Decision, Interactions, InvalidInput, Log
from o2pl.learners import O2PL, Exact, GaussianO2PL, Geometric, Member, Replay, Run, Triggered, load

__version__ = "0.1.0"

__all__ = [
    "O2PL",
    "ActionSets",
    "Decision",
    "Exact",
    "GaussianO2PL",
    "Geometric",
    "Interactions",
    "InvalidInput",
    "Log",
    "Member",
    "Replay",
    "Run",
    "Triggered",
    "__version__",
    "load",
]
