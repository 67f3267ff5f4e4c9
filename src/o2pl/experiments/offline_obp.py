"""OBP beside ours in the offline studies: its learners and estimators on the same logs, stored rows.

`benchmarks/offline_obp_rows.py` makes them, in the environment of the peers: OBP's pins and ours conflict, so its rows
cannot be made by a run of the study. They hold seeds 0 to 19 of the full size; a run with other seeds, or with logs of
another length, is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from o2pl.experiments.intervals import Estimate, greatest_size, not_run, of_means
from o2pl.experiments.offline import LABELS as OURS
from o2pl.experiments.offline import ahead, lead_on_average, smallest_lead
from o2pl.experiments.pessimism import by_seed
from o2pl.experiments.study import Claim, at_most
from o2pl.protocols import Floats

if TYPE_CHECKING:
    from pyarrow import Table

FILE = Path(__file__).with_name("offline_obp.json")
LABELS = {
    "obp-ipw": "OBP's IPWLearner, logistic",
    "obp-ipw-forest": "OBP's IPWLearner, forest",
    "obp-q": "OBP's QLearner, logistic",
    "obp-q-forest": "OBP's QLearner, forest",
}
TARGETS = {"uniform": "the uniform policy", "learned": "a policy learned from another log"}
ESTIMATORS = ("ips", "snips", "dm", "dr")
SETTINGS = (
    "OBP is obp 0.5.7, as it comes, on the same logs with standardised contexts, in an environment of its own: "
    "IPWLearner and QLearner with logistic regression (QLearner's model is additive in context and action) and, "
    "except in the overlap sweep, with random forests of 100 trees and 10 rows in a leaf; its regression model for DM "
    "and DR is logistic, three folds. Its NNPolicyLearner, which has a DR objective, is left out: it takes a minute "
    "for one such log. "
)
Whole = Literal["every", "average"]


@cache
def _stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def _worlds(study: str, rows: Table) -> dict[str, Any]:
    """World -> what is stored of it, if these rows are of logs as long."""
    kept = _stored().get("studies", {}).get(study)
    if kept is None or set(rows["rounds"].to_pylist()) != {kept["rounds"]}:
        return {}
    there = set(rows["world"].to_pylist())
    return {world: each for world, each in kept["worlds"].items() if world in there}


def _seeds(rows: Table) -> list[int]:
    return [int(seed) for seed in np.unique(np.asarray(rows["seed"]))]


def values(study: str, rows: Table) -> dict[str, dict[str, Floats]]:
    """Label -> world -> the exact values of what OBP's learner chose, of those seeds that are among the rows."""
    found: dict[str, dict[str, Floats]] = {}
    for world, kept in _worlds(study, rows).items():
        for name, of_seeds in kept["values"].items():
            chosen = [of_seeds[seed] for seed in _seeds(rows) if seed < len(of_seeds)]
            if chosen:
                found.setdefault(LABELS[name], {})[world] = np.array(chosen)
    return found


def leads(study: str, rows: Table, learner: str, rival: str) -> dict[str, Floats]:
    """World -> how much more ours is worth than OBP's, by seed, [seeds, 1]."""
    own, seeds = by_seed(rows, "value"), _seeds(rows)
    found = {}
    for world, kept in _worlds(study, rows).items():
        theirs = kept["values"][rival]
        pairs = [(at, seed) for at, seed in enumerate(seeds) if seed < len(theirs)]
        if (world, learner) in own and pairs:
            found[world] = np.array([[own[world, learner][at] - theirs[seed]] for at, seed in pairs])
    return found


def claims(study: str, rows: Table, whole: Whole, conditions: str = "") -> list[Claim]:
    """`whole`: whether ours is to be ahead on every task, or on the average of the tasks."""
    where = "On every task" if whole == "every" else "On the average of the sets"
    smallest = " (smallest lead)" if whole == "every" else ""

    def lead(learner: str, rival: str) -> Estimate:
        found = leads(study, rows, learner, rival)
        if not found:
            return not_run()
        return smallest_lead(found) if whole == "every" else lead_on_average(found)

    made: list[Claim] = []
    there = values(study, rows)
    if not there:
        return made
    for rival, label in ((rival, label) for rival, label in LABELS.items() if label in there):
        printed = not rival.endswith("forest")  # the paper's baselines are OBP's; all of them linear here
        made.append(
            ahead(
                f"{study}/beats-{rival}",
                f"{where} O2PL is worth more than {label}{smallest}.",
                lead("o2pl", rival),
                "recipe" if printed else "own",
                conditions,
                paper="O2PL above OBP's baselines in the figure" if printed else None,
                literal=lead("o2pl-paper", rival) if printed else None,
            )
        )
    for ours, theirs in (("ipw-csc", "obp-ipw"), ("dm-additive", "obp-q")):
        made.append(
            ahead(
                f"{study}/{ours}-not-weaker-than-obp",
                f"{where} our {OURS[ours]} is at most .01 below {LABELS[theirs]}: the rivals above are no weaker than "
                f"OBP's{smallest}.",
                lead(ours, theirs),
                "own",
                than=-0.01,
            )
        )
    return [*made, *_of_estimators(study, rows)]


# -- estimators


def _estimates(study: str, rows: Table, target: str) -> Iterator[Mapping[str, Any]]:
    for kept in _worlds(study, rows).values():
        yield kept["estimates"][target]


def _of_estimators(study: str, rows: Table) -> list[Claim]:
    seeds = _seeds(rows)

    def column(numbers: Sequence[float]) -> Floats:
        return np.array([numbers[seed] for seed in seeds if seed < len(numbers)])

    made = []
    for target, said in TARGETS.items():
        kept = list(_estimates(study, rows, target))
        gaps = [
            np.column_stack([column(each["o2pl"][name]) - column(each["obp"][name]) for name in ("ips", "snips")])
            for each in kept
        ]
        made.append(
            Claim(
                f"{study}/obp-same-ips-{target}",
                f"IPS and SNIPS of {said} are OBP's to five digits (greatest mean difference over tasks).",
                greatest_size(lambda *means: np.concatenate(means, axis=1), *gaps),
                at_most(1e-5),
                "own",
            )
        )
        for name in ("dm", "dr"):
            squares = [
                np.column_stack(
                    [(column(each[library][name]) - column(each["truth"])) ** 2 for library in ("o2pl", "obp")]
                )
                for each in kept
            ]
            made.append(
                Claim(
                    f"{study}/obp-{name}-{target}",
                    f"{name.upper()} of {said}, with the reward model of `evaluate`, has at most 1.05 times the root "
                    f"mean squared error of OBP's {name.upper()}, with its own (over all tasks).",
                    of_means(_root_ratio, *squares),
                    at_most(1.05),
                    "own",
                )
            )
    return made


def _root_ratio(*means: Floats) -> Floats:
    """Mean squared errors of each task, [B, 2], to the ratio of the roots of their sums, [B]."""
    total = np.sum(means, axis=0)
    return np.asarray(np.sqrt(total[:, 0] / total[:, 1]))
