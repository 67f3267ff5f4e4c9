"""Shared code of the studies of offline learning.

A unit draws a log, fits one learner to it and evaluates the learned policy exactly, deployed as it is ("sampled") and
by its most likely action ("greedy"; the only way for the rivals). All learners of a seed get the same log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.drawing import new_figure, tidy
from o2pl.errors import InvalidInput
from o2pl.learners import O2PL
from o2pl.protocols import Floats
from o2pl.simulation.description import OF_THE_RUN, described
from o2pl.simulation.experiment import Cell, Columns, Unit
from o2pl.simulation.figures import STYLES
from o2pl.simulation.rivals import OFFLINE_RIVALS, MakeLearner, seeded_rival, seedless_rival
from o2pl.simulation.rivals.models import Link
from o2pl.simulation.rivals.reductions import DirectMethod, DoublyRobust, IPWClassifier
from o2pl.storage import decode_from_storage, encode_for_storage
from o2pl_reproduction.claims.intervals import Measurement, least, of_means
from o2pl_reproduction.claims.study import Claim, Whose, above
from o2pl_reproduction.claims.summary import final_values, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pyarrow import Table

COLUMNS = {
    "log_rows": "int64",
    "value": "double",  # greedy deployment
    "sampled": "double",
    "logger": "double",
    "oracle": "double",
    "minimum": "double",  # the logger's overlap, `worlds.Overlap`
    "maximum": "double",
    "entropy": "double",
}


def _o2pl(penalty: float, control: float, l2: float) -> MakeLearner[Any]:
    return seeded_rival(O2PL, policy="linear", penalty=penalty, control=control, l2=l2)


def _ipw_csc(l2: float) -> MakeLearner[Any]:
    return seedless_rival(IPWClassifier, l2=l2)


def _dr(l2: float, clip: float, model_l2: float) -> MakeLearner[Any]:
    return seeded_rival(DoublyRobust, l2=l2, clip=clip, model_l2=model_l2)


def _dm(model: str, kind: tuple[Link, float | str], l2: float) -> MakeLearner[Any]:
    return seedless_rival(DirectMethod, model=model, link=kind[0], level=kind[1], l2=l2)


METHODS: dict[str, Callable[..., MakeLearner[Any]]] = {
    "o2pl": _o2pl,
    "ipw-csc": _ipw_csc,
    "dr": _dr,
    "dm-additive": partial(_dm, "additive"),
    "dm-arms": partial(_dm, "arms"),
}
PAPER_O2PL = seeded_rival(O2PL.paper)  # nothing to tune
PAPER_RIVALS = ("ipw-csc", "dr", "dm-additive")  # the paper's; OBP's DM is one model of context and action: additive
# Chosen by `tuning`, which says among which: (λ, control, l2), l2, (l2, clip, l2 of the models), ((link, level), l2).
SYNTHETIC: dict[str, tuple[Any, ...]] = {
    "o2pl": (0.3, 11.2, 17.3),
    "ipw-csc": (47.3,),
    "dr": (3.33, 2.0, 27.0),
    "dm-additive": (("ridge", 0.0), 300.0),
    "dm-arms": (("logistic", "mean"), 12.8),
}
MULTICLASS: dict[str, tuple[Any, ...]] = {
    "o2pl": (0.3, 0.2, 0.111),
    "ipw-csc": (0.205,),
    "dr": (0.192, 3.16, 0.52),
    "dm-additive": (("ridge", 0.0), 143.0),
    "dm-arms": (("ridge", 0.0), 32.8),
}
SYNTHETIC_SEARCH = (
    "79 settings each, other logs of the four synthetic tasks and of two floors that the overlap sweep does not "
    "report, .03 and .003"
)
MULTICLASS_SEARCH = "79 settings each, other splits of the same sets"
LABELS = {
    "o2pl": "O2PL",
    "o2pl-synthetic": "O2PL, as for the synthetic tasks",
    "o2pl-paper": "O2PL, as printed",
    "ipw-csc": "IPW-CSC",
    "dr": "DR",
    "dm-additive": "DM, additive",
    "dm-arms": "DM, one per arm",
    "ipw-csc-untuned": "IPW-CSC, default settings",
    "dr-untuned": "DR, default settings",
    "dm-additive-untuned": "DM, additive, default settings",
}


Beside = Mapping[
    str, Mapping[str, Floats]
]  # label -> world -> values by seed, of learners that are no part of the rows
UNTUNED = tuple(f"{name}-untuned" for name in PAPER_RIVALS)


def tuned_learners(settings: Mapping[str, tuple[Any, ...]]) -> dict[str, MakeLearner[Any]]:
    """Return the learners with these settings, the paper's exact version, and the paper's rivals untuned."""
    untuned = {f"{name}-untuned": OFFLINE_RIVALS[name] for name in PAPER_RIVALS}
    return {name: METHODS[name](*values) for name, values in settings.items()} | {"o2pl-paper": PAPER_O2PL} | untuned


def settings_text(settings: Mapping[str, tuple[Any, ...]], search: str) -> tuple[str, ...]:
    """Return the settings and how they were chosen, for the report."""
    penalty, control, l2 = settings["o2pl"]
    of_policy, clip, of_models = settings["dr"]
    (additive, level), additive_l2 = settings["dm-additive"]
    (arms, arms_level), arms_l2 = settings["dm-arms"]
    return (
        "All methods are linear in the features.",
        "Tuning: O2PL, IPW-CSC, DR and both DMs had the same search, for the mean value of greedy deployment "
        f"({search}; seeds 2000 to 2004, the best twelve also 2005 to 2009). The number of finalists and the rule for "
        "settings at an edge of the grid were changed after first searches on these seeds, for all methods alike.",
        f"O2PL: λ = {penalty:g}, control variate (ridge {control:g}), l2 = {l2:g}, baseline the mean, solved to "
        "convergence.",
        f"IPW-CSC: l2 = {settings['ipw-csc'][0]:g}. DR: l2 = {of_policy:g}, weights cut at {clip:g}, models' l2 = "
        f"{of_models:g}, cross-fitted. DM: additive {additive}, shrunk to {_level(level)}, l2 = {additive_l2:g}; one "
        f"{arms} model per arm, shrunk to {_level(arms_level)}, l2 = {arms_l2:g}.",
        "“As printed”, not tuned: the paper's objective, λ = 1, no baseline, no control variate, no l2. “Default "
        "settings”: l2 = 1, 0.1 and 1, DR cross-fitted and not clipped.",
        "Pessimism on its own: λ is 0, 0.1 and 1 with the clip on and off, for O2PL and for the objective as printed, "
        "all else equal.",
        "The paper does not give: the parameters of its tasks, the sizes of its logs, the number of seeds, the "
        "learners' settings.",
    )


def _level(level: float | str) -> str:
    return "the mean" if level == "mean" else f"{level:g}"


# -- units


def crossed_tasks(worlds: Mapping[str, Any], learners: Mapping[str, MakeLearner[Any]]) -> list[Cell]:
    """Return every task with every learner."""
    return [
        Cell({"name": name, "world": encode_for_storage(world)}, described(learner, make(2, None), OF_THE_RUN))
        for name, world in worlds.items()
        for learner, make in learners.items()
    ]


def run_unit(unit: Unit, learners: Mapping[str, MakeLearner[Any]]) -> Columns:
    make = learners[unit.learner["name"]]
    unit.check_learner(described(unit.learner["name"], make(2, None), OF_THE_RUN))
    task = decode_from_storage(unit.world["world"])
    chance, choice = np.random.SeedSequence(unit.seed).spawn(2)  # the log's, the same for all learners; the learner's
    logged = task.log(unit.rounds, np.random.default_rng(chance))
    learner = make(task.n_actions, int(choice.generate_state(1)[0]))
    log = logged.interactions
    learner.fit(*log)
    greedy = np.eye(task.n_actions)[learner.predict(logged.contexts)]
    overlap = logged.overlap
    return {
        "log_rows": [len(log)],
        "value": [logged.value(greedy)],
        "sampled": [logged.value(learner.predict_proba(logged.contexts))],
        "logger": [logged.logger_value],
        "oracle": [logged.oracle_value],
        "minimum": [overlap.minimum],
        "maximum": [overlap.maximum],
        "entropy": [overlap.entropy],
    }


# -- results from the rows


def worlds_of(rows: Table) -> list[str]:
    return list(dict.fromkeys(rows["world"].to_pylist()))


def leads(rows: Table, learner: str, rivals: Sequence[str], column: str = "value") -> dict[str, Floats]:
    """Return world -> the learner's `column` minus the value of each rival, by seed, [seeds, rivals]."""
    own, theirs = final_values(rows, column), final_values(rows, "value")
    found: dict[str, Floats] = {}
    for world in worlds_of(rows):
        for each in (learner, *rivals):
            if (world, each) not in own:
                raise InvalidInput(f"rows: found none of {each} on {world}, expected all of {[learner, *rivals]}")
        found[world] = np.column_stack([own[world, learner] - theirs[world, rival] for rival in rivals])
    return found


def smallest_lead(differences: Mapping[str, Floats], worlds: Iterable[str] | None = None) -> Measurement:
    """Return the smallest mean lead over worlds and rivals: above 0, it is the best everywhere."""
    chosen = [differences[world] for world in (differences if worlds is None else worlds)]
    return least(lambda *means: np.concatenate(means, axis=1), *chosen)


def lead_on_average(differences: Mapping[str, Floats]) -> Measurement:
    """Return the mean over worlds of the lead over the best rival of each."""
    return of_means(lambda *means: np.mean([each.min(axis=1) for each in means], axis=0), *differences.values())


def extra_lead(differences: Mapping[str, Floats], world: str, elsewhere: Sequence[str]) -> Measurement:
    """Return how much larger the lead over the best rival is in one world than on average in others."""

    def figure(here: Floats, *others: Floats) -> Floats:
        return np.asarray(here.min(axis=1) - np.mean([each.min(axis=1) for each in others], axis=0))

    return of_means(figure, differences[world], *(differences[each] for each in elsewhere))


def ahead(
    key: str,
    claim: str,
    measured: Measurement,
    whose: Whose,
    conditions: str = "",
    *,
    paper: str | None = None,
    literal: Measurement | None = None,
    than: float = 0.0,
) -> Claim:
    """Return a claim that requires a difference above `than`."""
    return Claim(key, claim, measured, above(than), whose, paper, literal=literal, conditions=conditions)


def table(
    rows: Table, arms: Mapping[str, str] | None = None, beside: Beside | None = None
) -> Sequence[Mapping[str, str]]:
    """Return the mean value ± standard error by learner and world; O2PL sampled and greedy; logger and oracle below.

    `arms`: additional learners with their labels, greedy only.
    """
    shown: list[Mapping[str, str]] = []
    present = set(rows["learner"].to_pylist())
    for name, label in LABELS.items():
        if name in present:
            shown.append(_line(f"{label}, greedy" if name.startswith("o2pl") else label, rows, "value", name))
            if name.startswith("o2pl"):
                shown.append(_line(f"{label}, sampled", rows, "sampled", name))
    shown += [_line(label, rows, "value", name) for name, label in (arms or {}).items() if name in present]
    for label, values in (beside or {}).items():
        cells = {world: text(values[world]) if world in values else "" for world in worlds_of(rows)}
        shown.append({"learner": label} | cells)
    some = next(iter(name for name in LABELS if name in present))
    return [*shown, _line("the logger", rows, "logger", some), _line("oracle", rows, "oracle", some)]


def _line(label: str, rows: Table, column: str, learner: str) -> Mapping[str, str]:
    found = final_values(rows, column)
    values = {world: found[world, learner] for world in worlds_of(rows) if (world, learner) in found}
    return {"learner": label} | {world: text(each) for world, each in values.items()}


def text(values: Floats, digits: int = 3) -> str:
    mean, error = mean_and_error(values)
    return f"{mean:.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")


# -- figures


def dots(rows: Table, title: str, beside: Beside | None = None) -> Figure:
    """Draw a panel per world: each learner's value ± 2 standard errors; the oracle dashed, the logger dotted."""
    worlds, names = worlds_of(rows), [name for name in LABELS if name in set(rows["learner"].to_pylist())]
    found = {column: final_values(rows, column) for column in ("value", "sampled", "logger", "oracle")}
    beside = beside or {}
    lines = len(names) + len(beside)
    across = min(2, len(worlds))
    down = -(-len(worlds) // across)
    figure = new_figure(8.6, 0.9 + (0.8 + 0.21 * lines) * down, wspace=0.06, hspace=0.04)
    panels = figure.subplots(down, across, sharey=True, squeeze=False).reshape(-1)
    for panel, world in zip(panels, worlds, strict=False):
        for line, name in enumerate(names):
            colour = STYLES[0 if name.startswith("o2pl") else 1][0]
            _dot(panel, line, found["value"][world, name], colour)
            if name.startswith("o2pl"):
                hollow = {"markerfacecolor": "white", "markersize": 6, "color": colour}
                panel.plot(found["sampled"][world, name].mean(), line, "o", zorder=1, **hollow)
        for line, values in enumerate(beside.values(), len(names)):
            if world in values:
                _dot(panel, line, values[world], STYLES[2][0])
        oracle, logger = (float(np.mean(found[column][world, names[0]])) for column in ("oracle", "logger"))
        room = logger - panel.get_xlim()[0] > oracle - logger  # for its name on the left of the logger's line
        for at, label, style, left in (
            (oracle, "oracle", (0, (6, 2)), True),
            (logger, "logger", (0, (1, 1.5)), room),
        ):
            panel.axvline(at, color="#000000", linestyle=style, linewidth=1.2)
            place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
            side: dict[str, Any] = {"ha": "right" if left else "left", "va": "top", "fontsize": 8}
            panel.annotate(label, (at, 1.0), (-4 if left else 4, 0), **side, **place)
        panel.margins(x=0.08)
        panel.locator_params(axis="x", nbins=5)
        panel.set_title(world, loc="left", fontsize=11)
        panel.set_ylim(lines - 0.5, -1.2)
        panel.set_yticks(range(lines), [*(LABELS[name] for name in names), *beside])
        tidy(panel, "x")
        panel.set_xlabel("exact value (mean reward)")
    for panel in panels[len(worlds) :]:
        panel.set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _dot(panel: Axes, line: int, values: Floats, colour: str) -> None:
    mean, error = mean_and_error(values)
    bar = {"xerr": 2 * np.nan_to_num(error), "color": colour, "capsize": 3, "markersize": 7}
    panel.errorbar(mean, line, fmt="o", **bar)
