"""What the rows of `structures` say: claims, the table, the data behind the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from o2pl.protocols import Floats
from o2pl_reproduction.claims.intervals import Measurement, binomial, least, mean, of_means, ratio
from o2pl_reproduction.claims.study import Bar, Claim, Study, above, at_least, at_most
from o2pl_reproduction.claims.summary import percentile_interval
from o2pl_reproduction.studies.bakeoff_scores import LABELS as BAKEOFF_LABELS
from o2pl_reproduction.studies.bakeoff_statistics import wilcoxon_p
from o2pl_reproduction.studies.structures import STRUCTURES
from o2pl_reproduction.studies.structures_figures import drift_figure, gaps_figure, shares_figure
from o2pl_reproduction.studies.structures_rows import (
    Runs,
    by_set,
    gaps,
    gaps_by_set,
    learners_of,
    one_hot_pair,
    read_runs,
    set_means,
    sets_of,
    structures_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

LOGISTIC, RIDGE = "logistic-greedy-quadratic", "ridge-greedy-quadratic"
LABELS = {
    "bandit": "Bandit",
    "bandit-fixed": "Bandit, changes not detected",
    **{
        name: BAKEOFF_LABELS[name]
        for name in ("o2pl", "vw-greedy", "vw-cover", "vw-bag", "vw-regcb", "vw-greedy-quadratic")
    },
    "vw-cover-quadratic": "VW Cover-nu, products",
    "vw-bag-quadratic": "VW Bag-greedy, products",
    "vw-regcb-quadratic": "VW RegCB-opt, products",
    RIDGE: BAKEOFF_LABELS[RIDGE],
    LOGISTIC: BAKEOFF_LABELS[LOGISTIC],
    "linucb": "LinUCB",
    "linucb-quadratic": "LinUCB, products",
    "lints": "LinTS",
    "squarecb": "SquareCB on logistic, products",
    "fastcb": "FastCB on logistic, products",
    "bootstrap": "bootstrap of 4 logistic, products",
    "boosted-trees": "boosted trees",
    "uniform": "uniform",
}
OURS = ("bandit", "bandit-fixed")


def rivals(runs: Runs, part: str, structure: str | None = None) -> list[str]:
    return [name for name in learners_of(runs, part, structure) if name not in OURS]


# -- claims


def claims(rows: Table) -> Sequence[Claim]:
    """The bars, part by part; what was not played, or whose rival is missing, is left out."""
    runs = read_runs(rows)
    return [*_one_hot(runs), *_structures(runs), *_synthetic(runs), *_drift(runs), *_cpu(runs), *_wheel(runs)]


def _claim(key: str, text: str, measured: Measurement, bar: Bar) -> Claim:
    return Claim(f"structures/{key}", text, measured, bar, "own")


def _one_hot(runs: Runs) -> list[Claim]:
    by_name = by_set(runs, "one-hot", "one-hot", "bandit", "reward")
    if not by_name:
        return []
    text = (
        f"One-hot rewards, T ≤ 5000: the mean reward over {len(by_name)} sets (which are fixed: chance is the seeds')."
    )
    level = of_means(lambda *means: np.mean(means, axis=0), *by_name.values())
    made = [_claim("one-hot-mean", text, level, at_least(0.706, "our prototype's number"))]
    for rival in (each for each in (LOGISTIC, RIDGE) if each in rivals(runs, "one-hot")):
        pair, label = one_hot_pair(runs, rival), LABELS[rival]
        won = pair.by_sign
        made += [
            _claim(
                f"one-hot-{rival}-ahead",
                f"There, Bandit is ahead of {label} (mean gap over sets; Wilcoxon's p {pair.wilcoxon:.2g}).",
                mean(gaps(runs, "one-hot", ["one-hot"], "bandit", rival, "reward"), "sets"),
                above(0.0),
            ),
            _claim(
                f"one-hot-{rival}-wins",
                f"There, it has five significant wins per loss or more against {label} ({won} of {won.sets} sets): the "
                "share of wins among the sets that are decided.",
                binomial(won.wins, won.wins + won.losses, "decided sets"),
                at_least(5 / 6),
            ),
        ]
    return made


def gap_table(runs: Runs, part: str, structures: Sequence[str], measure: str) -> tuple[list[str], Floats]:
    """Rivals, and `Bandit`'s gaps to them by set, [sets, rivals]; NaN where a rival has not played."""
    found = {
        rival: gaps_by_set(runs, part, structures, "bandit", rival, measure)
        for rival in rivals(runs, part)
        if rival != "uniform"
    }
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    played = [rival for rival, each in found.items() if each]
    return played, np.array([[found[rival].get(name, np.nan) for rival in played] for name in names])


def _nearest(rivals: Sequence[str], table: Floats) -> str:
    """The rival with the smallest mean gap, on the sets that it has."""
    return rivals[int(np.nanmean(table, axis=0).argmin())]


def _structures(runs: Runs) -> list[Claim]:
    played = structures_of(runs, "structures")
    made = []
    for structure in played:
        present, table = gap_table(runs, "structures", [structure], "share")
        text = (
            f"Rewards “{structure}”: Bandit's share of the possible gain minus the best rival's "
            f"({LABELS[_nearest(present, table)]})."
        )
        measured = least(lambda means: means, table, over="sets")
        made.append(_claim(f"share-{structure}", text, measured, at_least(-0.005)))
    if played:
        present, table = gap_table(runs, "structures", played, "share")
        rival = _nearest(present, table)
        p = wilcoxon_p(gaps(runs, "structures", played, "bandit", rival, "share"))
        text = (
            f"On average over the structures Bandit's share is ahead of the best rival's ({LABELS[rival]}; "
            f"Wilcoxon's p over {len(table)} sets {p:.2g})."
        )
        made.append(_claim("share-mean", text, least(lambda means: means, table, over="sets"), above(0.0)))
    return made


def _by_seed(runs: Runs, world: str, names: Sequence[str]) -> Floats:
    """`Bandit`'s gaps of mean reward in a world of independent rewards, [seeds, rivals]; NaN: it has not played."""
    own = runs["independent", "independent", world, "bandit"]
    theirs = [runs.get(("independent", "independent", world, name), {}) for name in names]
    return np.array(
        [[own[seed].reward - each[seed].reward if seed in each else np.nan for each in theirs] for seed in sorted(own)]
    )


def _synthetic(runs: Runs) -> list[Claim]:
    made = []
    if independent := sets_of(runs, "independent"):
        names = rivals(runs, "independent")
        found = {world: _by_seed(runs, world, names) for world in independent}
        means = {
            (world, name): value
            for world, table in found.items()
            for name, value in zip(names, np.nanmean(table, axis=0), strict=True)
        }
        world, rival = min(means, key=lambda each: means[each])
        text = (
            "Independent logistic rewards: Bandit's mean reward minus that of a rival, the smallest over worlds and "
            f"rivals ({LABELS[rival]} in {world})."
        )
        measured = least(lambda *each: np.concatenate(each, axis=1), *found.values())
        made.append(_claim("independent", text, measured, at_least(-0.003)))
    if sets_of(runs, "many actions"):
        for rival in (LOGISTIC, RIDGE):
            gap = gaps(runs, "many actions", ["many actions"], "bandit", rival, "reward")
            text = (
                f"12 to 26 actions: Bandit's mean reward minus that of {LABELS[rival]}, over {len(gap)} worlds "
                f"(the smallest of a world: {gap.min():+.3f})."
            )
            made.append(_claim(f"many-{rival}", text, mean(gap, "worlds"), above(0.0)))
    return made


def _drift(runs: Runs) -> list[Claim]:
    made = []
    for change, bar in (("reversal", 0.87), ("gradual", 0.8)):
        late = set_means(runs, "drift", [change], "bandit", "late")
        if len(late):
            text = f"Classes change names ({change}): Bandit's mean reward in the last quarter, over {len(late)} sets."
            made.append(_claim(change, text, mean(late, "sets"), at_least(bar, "our prototype's number")))
    for part, structure in (("drift", "none"), ("one-hot", "one-hot")):
        lost = gaps(runs, part, [structure], "bandit", "bandit-fixed", "reward")
        if len(lost):
            where = "the same sets without change" if part == "drift" else "the one-hot sets"
            text = f"Where nothing changes ({where}), detecting changes costs Bandit little mean reward."
            made.append(_claim(f"unchanged-{part}", text, mean(-lost, "sets"), at_most(0.002)))
    counted = [
        played.changes
        for (_, structure, _, learner), seeds in runs.items()
        if learner == "bandit" and structure not in ("reversal", "gradual")
        for played in seeds.values()
        if played.changes >= 0
    ]
    if counted:
        text = (
            f"Where nothing changes, Bandit says that it noticed a change in at most one run of 200 (share of "
            f"{len(counted)} runs)."
        )
        share = binomial(sum(each > 0 for each in counted), len(counted))
        made.append(_claim("false-changes", text, share, at_most(0.005)))
    return made


def seconds(runs: Runs, part: str, learner: str) -> dict[str, float]:
    """Set -> CPU seconds of all runs of a part."""
    return {
        key[2]: sum(run.seconds for run in played.values())
        for key, played in runs.items()
        if (key[0], key[3]) == (part, learner)
    }


def _cpu(runs: Runs) -> list[Claim]:
    own, greedy = (seconds(runs, "one-hot", learner) for learner in ("bandit", "vw-greedy"))
    both = [name for name in own if name in greedy]
    if not both:
        return []
    text = (
        "CPU seconds over the one-hot sets, both called every round from Python: Bandit's over VW Greedy's (the noise "
        "of the machine is not in the interval)."
    )
    measured = ratio([own[name] for name in both], [greedy[name] for name in both], over="sets")
    return [_claim("cpu", text, measured, at_most(1.0))]


def _wheel(runs: Runs) -> list[Claim]:
    found = [by_set(runs, "wheel", "wheel", name, "regret") for name in ("bandit", "linucb-quadratic")]
    if not all(found):
        return []
    ours, theirs = (next(iter(each.values())) for each in found)
    text = (
        f"Wheel, δ = .95: Bandit's regret ({ours.mean():,.0f}) over that of tuned LinUCB on the same features "
        f"({theirs.mean():,.0f})."
    )
    return [_claim("wheel", text, of_means(lambda a, b: a / b, ours, theirs), at_most(1.2))]


# -- the table


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    """A line for each learner: mean reward on one-hot sets, shares of the gain, last quarters, synthetic worlds."""
    runs = read_runs(rows)
    present = {key[3] for key in runs}
    return [_line(runs, learner) for learner in LABELS if learner in present]


def _line(runs: Runs, learner: str) -> Mapping[str, str]:
    def shown(part: str, structures: Sequence[str], measure: str, form: str = ".3f") -> str:
        values = set_means(runs, part, structures, learner, measure)
        return format(values.mean(), form) if len(values) else ""

    structures = structures_of(runs, "structures")
    line = {"learner": LABELS[learner], "one-hot, T ≤ 5000": shown("one-hot", ["one-hot"], "reward")}
    line |= {f"share: {name}": shown("structures", [name], "share") for name in structures}
    gap = gaps(runs, "structures", structures, "bandit", learner, "share")
    line["mean share"] = shown("structures", structures, "share")
    line["Bandit's gap"], line["Wilcoxon p"] = "", ""
    if len(gap) and learner != "bandit":
        low, high = percentile_interval(gap)
        line["Bandit's gap"] = f"{gap.mean():+.3f} [{low:+.3f}, {high:+.3f}]"
        line["Wilcoxon p"] = f"{wilcoxon_p(gap):.2g}"
    for change, label in (("none", "no change"), ("reversal", "reversal"), ("gradual", "gradual")):
        line[f"last quarter: {label}"] = shown("drift", [change], "late")
    line["independent"] = shown("independent", ["independent"], "reward", ".4f")
    line["12–26 actions"] = shown("many actions", ["many actions"], "reward")
    line["wheel: regret"] = shown("wheel", ["wheel"], "regret", ",.0f")
    cpu, greedy = (sum(seconds(runs, "one-hot", name).values()) for name in (learner, "vw-greedy"))
    line["CPU × VW Greedy, one-hot"] = f"{cpu / greedy:.2f}" if cpu and greedy else ""
    return line


# -- figures


def figures(rows: Table) -> Mapping[str, Figure]:
    runs = read_runs(rows)
    made = {}
    if structures := structures_of(runs, "structures"):
        shares = {
            learner: {
                structure: np.array(
                    [each.mean() for each in by_set(runs, "structures", structure, learner, "share").values()]
                )
                for structure in structures
            }
            for learner in learners_of(runs, "structures")
            if learner != "uniform"
        }
        made["shares"] = shares_figure(shares, LABELS)
        behind = {
            learner: -gaps(runs, "structures", structures, "bandit", learner, "share")
            for learner in shares
            if learner != "bandit"
        }
        if all(len(each) for each in behind.values()):
            made["gaps"] = gaps_figure(behind, len(structures), LABELS)
    if sets_of(runs, "drift"):
        courses: dict[str, dict[str, tuple[Floats, Floats]]] = {
            change: {learner: course(runs, change, learner) for learner in learners_of(runs, "drift", change)}
            for change in ("reversal", "gradual")
            if change in structures_of(runs, "drift")
        }
        made["drift"] = drift_figure(courses, LABELS)
    return made


def course(runs: Runs, change: str, learner: str) -> tuple[Floats, Floats]:
    """Ends of stretches as shares of the rounds, [stretches]; their mean rewards on every set, [sets, stretches]."""
    found = [played for key, played in runs.items() if (key[0], key[1], key[3]) == ("drift", change, learner)]
    times = np.array([time for time, _ in next(iter(found[0].values())).course])
    rewards = [np.mean([[reward for _, reward in run.course] for run in played.values()], axis=0) for played in found]
    return times, np.array(rewards)


STRUCTURES_STUDY = Study(
    experiment=STRUCTURES,
    title="Beyond one benchmark: six reward structures, change, many actions",
    claim="Our own question, not the paper's: whether `Bandit` with default settings is the best learner whatever "
    "rewards look like, also when the world changes, and what it costs.",
    settings=(
        (
            "The odd half of the sets is not untouched: other forms of this learner were compared on it before. The "
            "seeds (from 8000) are new. Bandit has its default settings."
        ),
        "One-hot part: all sets of the odd half, T = min(n, 5000), 10 seeds. Rivals have the bake-off's settings.",
        (
            "Six structures: the sets of the odd half with three classes or more and at least 300 rows, T = min(n, "
            "2000), 5 seeds. SquareCB, FastCB, the bootstrap, boosted trees and VW with products except Greedy have 3 "
            "seeds, here and on the synthetic worlds; boosted trees play every other set. Learners are compared on "
            "the runs that both have."
        ),
        (
            "Rewards of class c and action a. One-hot: 1 for a = c, else 0. Noisy: 1 with probability .5 for a = c, "
            ".1 for others. Rare: .10 and .01. Several: 1 for a = c and for the max(1, ⌊K/4⌋) actions after c in a "
            "fixed cyclic order. Graded: uniform on [0, 2m], m = .5 · .6^(distance of a and c on the circle of "
            "classes). Costs: 1 - cost/largest cost, with fixed log-normal costs."
        ),
        "Share of the possible gain: (reward - uniform's) / (best action's - uniform's), in expected rewards.",
        (
            "Rivals of this part have one setting for all structures: the best of four on five such sets of the even "
            "half (T = 1,000, seed 5000), or of five where the best of four was at an edge."
        ),
        (
            "Change: eight sets of both halves with 4,000 rows or more that a linear model can learn, T = 4,000, 5 "
            "seeds. Class k becomes (k + ⌊K/2⌋) mod K at half time, or gradually over the middle half. Two of the "
            "sets are odd, six even; the rule for detecting changes was developed on such sets."
        ),
        (
            "Independent rewards: one logistic model of the reward per action, d 5 to 20, K 3 to 10, T = 4,000, 10 "
            "seeds. 12 to 26 actions: one-hot rewards, one cluster per class, d 8 to 16, T = 4,000, 5 seeds."
        ),
        (
            "Wheel: T = 10,000, 10 seeds. LinUCB uses the inputs and their products, as Bandit's rich members do, "
            "with the width chosen in the wheel study."
        ),
        (
            "Intervals are bootstrap over sets. A set is won or lost as in the bake-off. The best rival is chosen in "
            "hindsight, part by part."
        ),
        (
            "CPU seconds are those of deciding and learning; every learner is called in every round. Without a "
            "folder: embedded sets, which decide nothing."
        ),
    ),
    claims=claims,
    figures=figures,
    table=table,
    headline="structures/share-mean",
)
