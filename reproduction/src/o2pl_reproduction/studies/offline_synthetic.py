"""The benefit of pessimism, synthetic: policies from logs of four Bernoulli tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl.simulation.worlds import LOGGED_TASKS
from o2pl_reproduction.claims.study import Claim, Study
from o2pl_reproduction.studies import offline, offline_arms, offline_obp
from o2pl_reproduction.studies.offline import LABELS, PAPER_RIVALS, UNTUNED, ahead, extra_lead, leads, smallest_lead

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

EASY, HARD = ("logistic", "linear-bernoulli"), ("weak-overlap", "misspecified")
TASKS = ("logistic", "weak-overlap", "linear-bernoulli", "misspecified")
LEARNERS = offline.tuned_learners(offline.SYNTHETIC) | offline_arms.learners(offline.SYNTHETIC)
CONDITIONS = (
    "with a baseline, a control variate and an l2, chosen on other seeds by the same search as the rivals' settings; "
    "deployed greedily"
)


def cells(data: str | None) -> Sequence[Cell]:
    return offline.crossed_tasks({name: LOGGED_TASKS[name] for name in TASKS}, LEARNERS)


def run_unit(unit: Unit) -> Columns:
    return offline.run_unit(unit, LEARNERS)


def claims(rows: Table) -> Sequence[Claim]:
    """Return the claims. Each lead is the smallest over the tasks, with a joint interval."""
    name, letter = "offline-synthetic", "o2pl-paper"
    made = [
        ahead(
            f"{name}/beats-{rival}",
            f"On every synthetic task O2PL is worth more than {LABELS[rival]} (smallest lead over tasks).",
            smallest_lead(leads(rows, "o2pl", [rival])),
            "recipe",
            CONDITIONS,
            paper="O2PL above it in the figure",
            literal=smallest_lead(leads(rows, letter, [rival])),
        )
        for rival in (*PAPER_RIVALS, *UNTUNED)
    ]
    own, by_letter = (leads(rows, learner, PAPER_RIVALS) for learner in ("o2pl", letter))
    made += [
        ahead(
            f"{name}/where-it-is-hard-{task}",
            f"The lead over the best of the three is larger on the {task} task than on the two easy ones (difference).",
            extra_lead(own, task, EASY),
            "recipe",
            CONDITIONS,
            paper="“especially strong under weak overlap and misspecification”",
            literal=extra_lead(by_letter, task, EASY),
        )
        for task in HARD
    ]
    for task in HARD:
        useful = "“especially strong under weak overlap and misspecification, where pessimistic policy learning is most"
        useful += " useful”"
        made += offline_arms.more_useful(name, rows, offline.SYNTHETIC, task, EASY, useful)
    made += offline_obp.claims(name, rows, "On every task", CONDITIONS)
    arms = leads(rows, "o2pl", ["dm-arms"])
    return [
        *made,
        *offline_arms.claims(name, rows, offline.SYNTHETIC, " on the average of the tasks"),
        *(
            claim
            for task in HARD
            for claim in offline_arms.claims_of_part(
                name, rows, offline.SYNTHETIC, task, f" on the {task} task", [task]
            )
        ),
        ahead(
            f"{name}/paper-letter",
            "The paper's objective as printed is above all three on every task (smallest lead over tasks and rivals).",
            smallest_lead(by_letter),
            "paper",
            paper="O2PL above them in the figure",
        ),
        ahead(
            f"{name}/sampled",
            "Sampled from, instead of deployed greedily, O2PL is still above all three on every task.",
            smallest_lead(leads(rows, "o2pl", PAPER_RIVALS, "sampled")),
            "own",
            CONDITIONS,
        ),
        ahead(
            f"{name}/dm-arms",
            "On every task O2PL is worth more than a DM with one model per arm (smallest lead).",
            smallest_lead(arms),
            "own",
            CONDITIONS,
        ),
        ahead(
            f"{name}/dm-arms-misspecified",
            "On the misspecified task O2PL is worth more than a DM with one model per arm.",
            smallest_lead(arms, ["misspecified"]),
            "own",
            CONDITIONS,
        ),
    ]


def figures(rows: Table) -> Mapping[str, Figure]:
    title = "Policies learned from a log, synthetic tasks (filled: greedy deployment, hollow: sampled)"
    pessimism = "Pessimism alone: value gained by penalty and clip, mean over the four tasks (95 % intervals)"
    return {
        "offline-synthetic": offline.dots(rows, title, offline_obp.values("offline-synthetic", rows)),
        "offline-synthetic-pessimism": offline_arms.figure(rows, offline.SYNTHETIC, pessimism),
        **offline_obp.figures("offline-synthetic", rows),
    }


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    beside = offline_obp.values("offline-synthetic", rows)
    return offline.table(rows, offline_arms.labels(offline.SYNTHETIC), beside)


OFFLINE_SYNTHETIC = Study(
    experiment=Experiment(
        name="offline-synthetic",
        summary="Policies from logs of four synthetic tasks, valued exactly.",
        sizes={"quick": Size(rounds=2000, seeds=5), "full": Size(rounds=2000, seeds=20)},
        cells=cells,
        run=run_unit,
        columns=offline.COLUMNS,
        headline="value",
    ),
    title="The benefit of pessimism: synthetic logs",
    claim="O2PL learns better policies from a log than IPW-CSC, DM and DR, most of all under weak overlap and "
    "misspecification.",
    settings=(
        (
            "Tasks: ten features, five actions, Bernoulli rewards. Loggers are softmax policies that do not know the "
            "rewards. Logs of 2,000 rows, 20 seeds (quick: 5 seeds)."
        ),
        *offline_obp.SETTINGS,
        *offline.settings_text(offline.SYNTHETIC, offline.SYNTHETIC_SEARCH),
    ),
    claims=claims,
    figures=figures,
    table=table,
    headline="offline-synthetic/beats-dr",
)
