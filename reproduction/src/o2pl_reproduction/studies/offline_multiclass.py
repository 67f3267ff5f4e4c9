"""The benefit of pessimism, multiclass: policies from logs of classification sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.worlds import LOGGED_TASKS
from o2pl_reproduction.claims.study import Claim, Study
from o2pl_reproduction.studies import offline, offline_arms, offline_obp
from o2pl_reproduction.studies.offline import LABELS, PAPER_RIVALS, ahead, lead_on_average, leads, smallest_lead

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

SETS = ("iris", "wine", "breast-cancer", "digits")
LEARNERS = offline.tuned_learners(offline.MULTICLASS) | {
    "o2pl-synthetic": offline.METHODS["o2pl"](*offline.SYNTHETIC["o2pl"]),
    **offline_arms.learners(offline.MULTICLASS),
}
CONDITIONS = "with its own settings, chosen on other splits of the same sets by the same search as the rivals'"


def cells(data: str | None) -> Sequence[Cell]:
    return offline.crossed_tasks({name: LOGGED_TASKS[name] for name in SETS}, LEARNERS)


def run_unit(unit: Unit) -> Columns:
    return offline.run_unit(unit, LEARNERS)


def claims(rows: Table) -> Sequence[Claim]:
    """Return the claims: leads on the average of the data sets, or the smallest lead ("on no set")."""
    name = "offline-multiclass"
    made = [
        ahead(
            f"{name}/beats-{rival}",
            f"On the average of the sets O2PL is worth more than {LABELS[rival]}.",
            lead_on_average(leads(rows, "o2pl", [rival])),
            "recipe",
            CONDITIONS,
            paper="compared in a figure, without a claim in the text",
            literal=lead_on_average(leads(rows, "o2pl-paper", [rival])),
        )
        for rival in PAPER_RIVALS
    ]
    return [
        *made,
        ahead(
            f"{name}/beats-dm-arms",
            f"On the average of the sets O2PL is worth more than {LABELS['dm-arms']}.",
            lead_on_average(leads(rows, "o2pl", ["dm-arms"])),
            "own",
            CONDITIONS,
        ),
        ahead(
            f"{name}/level-with-the-best",
            "On no set does O2PL fall more than .02 short of the best of IPW-CSC, DR and additive DM (smallest lead).",
            smallest_lead(leads(rows, "o2pl", PAPER_RIVALS)),
            "own",
            CONDITIONS,
            than=-0.02,
        ),
        ahead(
            f"{name}/one-setting",
            "The setting of the synthetic tasks is above the best of IPW-CSC, DR and additive DM on average here too.",
            lead_on_average(leads(rows, "o2pl-synthetic", PAPER_RIVALS)),
            "own",
        ),
        ahead(
            f"{name}/paper-letter",
            "The paper's objective as printed is above the best of IPW-CSC, DR and additive DM on the average of "
            "the sets.",
            lead_on_average(leads(rows, "o2pl-paper", PAPER_RIVALS)),
            "paper",
            paper="compared in a figure, without a claim in the text",
        ),
        *offline_obp.claims(name, rows, "On the average of the sets", CONDITIONS),
        *offline_arms.claims(name, rows, offline.MULTICLASS, " on the average of the sets"),
    ]


def figures(rows: Table) -> Mapping[str, Figure]:
    title = "Policies learned from a log, classification sets (filled: greedy deployment, hollow: sampled)"
    pessimism = "Pessimism alone: value gained by penalty and clip, mean over the four sets (95 % intervals)"
    return {
        "offline-multiclass": offline.dots(rows, title, offline_obp.values("offline-multiclass", rows)),
        "offline-multiclass-pessimism": offline_arms.figure(rows, offline.MULTICLASS, pessimism),
        **offline_obp.figures("offline-multiclass", rows),
    }


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    beside = offline_obp.values("offline-multiclass", rows)
    return offline.table(rows, offline_arms.labels(offline.MULTICLASS), beside)


OFFLINE_MULTICLASS = Study(
    experiment=Experiment(
        name="offline-multiclass",
        summary="Policies from logs of classification sets (embedded ones), valued exactly.",
        sizes={"quick": Size(rounds=2000, seeds=5), "full": Size(rounds=2000, seeds=20)},
        cells=cells,
        run=run_unit,
        columns=offline.COLUMNS,
        headline="value",
    ),
    title="The benefit of pessimism: multiclass logs",
    claim="O2PL is compared with IPW-CSC, DM and DR on classification sets turned into logs; the text makes no claim "
    "in numbers.",
    settings=(
        (
            "Data: a logistic regression, fitted to a tenth of the rows, is the logger (floor 0.1/K). Three tenths of "
            "the rows value the policies. The rest is the log (90 to 1,077 rows). 20 seeds (quick: 5)."
        ),
        *offline_obp.SETTINGS,
        *offline.settings_text(offline.MULTICLASS, offline.MULTICLASS_SEARCH),
    ),
    claims=claims,
    figures=figures,
    table=table,
)
