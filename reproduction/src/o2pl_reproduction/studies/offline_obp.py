"""OBP's learners and estimators on the same logs as the offline studies, from stored rows.

`reproduction/peers/offline_obp_rows.py` makes them, in the environment of the peers: OBP's pins and ours conflict, so
its rows cannot be made by a run of the study. They hold seeds 0 to 19 of the full size; a run with other seeds,
or with logs of another length, is not compared.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.protocols import Floats
from o2pl.simulation.figures import STYLES
from o2pl_reproduction.claims.intervals import Measurement, greatest_size, not_run, of_means
from o2pl_reproduction.claims.study import Claim, at_most
from o2pl_reproduction.studies.offline import LABELS as OURS
from o2pl_reproduction.studies.offline import ahead, lead_on_average, smallest_lead
from o2pl_reproduction.studies.pessimism import by_seed

if TYPE_CHECKING:
    from matplotlib.figure import Figure
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
    "OBP is obp 0.5.7 with default settings, on the same logs (seeds 0 to 19) with standardised contexts, in its own "
    "environment (`python -m reproduction.peers.offline_obp_rows` makes its rows again): IPWLearner and QLearner with "
    "logistic regression (QLearner's model is additive in context and action) and, except in the overlap sweep, with "
    "random forests of 100 trees and 10 rows per leaf. Its regression model for DM and DR is logistic, three folds. "
    "Its NNPolicyLearner, which has a DR objective, is left out: it takes a minute for one such log.",
)


@cache
def _stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def _worlds(study: str, rows: Table) -> dict[str, Any]:
    """Return world -> its stored values, if the rows are of logs of the same length."""
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
    """Return world -> our value minus OBP's, by seed, [seeds, 1]."""
    own, seeds = by_seed(rows, "value"), _seeds(rows)
    found = {}
    for world, kept in _worlds(study, rows).items():
        theirs = kept["values"][rival]
        pairs = [(at, seed) for at, seed in enumerate(seeds) if seed < len(theirs)]
        if (world, learner) in own and pairs:
            found[world] = np.array([[own[world, learner][at] - theirs[seed]] for at, seed in pairs])
    return found


def claims(study: str, rows: Table, where: str, conditions: str = "") -> list[Claim]:
    """`where` begins the statements: "On every task", or "On the average of the sets"; by it leads are summed up."""
    average = "average" in where
    smallest = "" if average else " (smallest lead)"

    def lead(learner: str, rival: str) -> Measurement:
        found = leads(study, rows, learner, rival)
        if not found:
            return not_run()
        return lead_on_average(found) if average else smallest_lead(found)

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


def _squares(study: str, rows: Table, target: str, estimator: str) -> list[Floats]:
    """For each world the squared errors of ours and of OBP's estimate, by seed, [seeds, 2]."""
    seeds, found = _seeds(rows), []
    for kept in _worlds(study, rows).values():
        each = kept["estimates"][target]
        chosen = [seed for seed in seeds if seed < len(each["truth"])]
        truth, ours, theirs = (
            np.array(numbers)[chosen] for numbers in (each["truth"], each["o2pl"][estimator], each["obp"][estimator])
        )
        found.append(np.column_stack([ours - truth, theirs - truth]) ** 2)
    return found


def _gaps(study: str, rows: Table, target: str) -> list[Floats]:
    """For each world our IPS and SNIPS less OBP's, by seed, [seeds, 2]."""
    seeds, found = _seeds(rows), []
    for kept in _worlds(study, rows).values():
        ours, theirs = kept["estimates"][target]["o2pl"], kept["estimates"][target]["obp"]
        chosen = [seed for seed in seeds if seed < len(ours["ips"])]
        found.append(np.column_stack([np.subtract(ours[name], theirs[name])[chosen] for name in ("ips", "snips")]))
    return found


def _of_estimators(study: str, rows: Table) -> list[Claim]:
    made = []
    for target, said in TARGETS.items():
        made.append(
            Claim(
                f"{study}/obp-same-ips-{target}",
                f"IPS and SNIPS of {said} are OBP's to five digits (greatest mean difference).",
                greatest_size(lambda *means: np.concatenate(means, axis=1), *_gaps(study, rows, target)),
                at_most(1e-5),
                "own",
            )
        )
        for name in ("dm", "dr"):
            label = name.upper()
            made.append(
                Claim(
                    f"{study}/obp-{name}-{target}",
                    f"{label} of {said}, with the reward model of `evaluate`, has at most 1.05 times the root mean "
                    f"squared error of OBP's {label}, with its own model (ratio over all logs).",
                    of_means(_root_ratio, *_squares(study, rows, target, name)),
                    at_most(1.05),
                    "own",
                )
            )
    return made


def _root_ratio(*means: Floats) -> Floats:
    """Mean squared errors of each world, [B, 2], to the ratio of the roots of their sums, [B]."""
    total = np.sum(means, axis=0)
    return np.asarray(np.sqrt(total[:, 0] / total[:, 1]))


def figures(study: str, rows: Table) -> dict[str, Figure]:
    """Root mean squared errors of estimates, ours and OBP's, with 95 % intervals; none where nothing is stored."""
    if not values(study, rows):
        return {}
    figure = new_figure(8.0, 3.4)
    panels = figure.subplots(1, len(TARGETS), sharey=True)
    for axes, (target, said) in zip(panels, TARGETS.items(), strict=True):
        for library, (label, (colour, _)) in enumerate(
            zip(("o2pl evaluate", "OBP"), (STYLES[0], STYLES[2]), strict=True)
        ):
            for place, name in enumerate(ESTIMATORS):
                squares = [each[:, library] for each in _squares(study, rows, target, name)]
                found = of_means(lambda *means: np.sqrt(np.mean(means, axis=0)), *squares)
                ends = [found.value - found.low, found.high - found.value] if found.is_bounded else [0.0, 0.0]
                shown = {"color": colour, "marker": "os"[library], "capsize": 3, "label": label if place == 0 else None}
                axes.errorbar(place - 0.1 + 0.2 * library, found.value, [[max(end, 0.0)] for end in ends], **shown)
        axes.set_xticks(range(len(ESTIMATORS)), [name.upper() for name in ESTIMATORS])
        axes.set_title(said, loc="left", fontsize=11)
        tidy(axes)
    panels[0].set_ylim(bottom=0)  # of both
    panels[0].set_ylabel("root mean squared error")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    title = "Off-policy estimates against exact values, all logs (95 % intervals)"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return {f"{study}-estimates": figure}
