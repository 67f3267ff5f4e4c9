"""`compare`: learners in worlds over seeds, as rows, a table and a figure."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from o2pl.errors import InvalidInput, nearest
from o2pl.learners.params import Parameters
from o2pl.protocols import Environment
from o2pl.simulation.engines import InProcess, Local, Ray, UnitEngine
from o2pl.simulation.experiment import Experiment, Options, Size
from o2pl.simulation.figures import STYLES, figure_of_curves
from o2pl.simulation.rivals import RIVALS, MakeLearner
from o2pl.simulation.run_progress import UnitProgress
from o2pl.simulation.runner import Report, run
from o2pl.simulation.store import results
from o2pl.simulation.units import COLUMNS, LikeTemplate, NamedRival, PlayUnit, crossed_units
from o2pl.simulation.worlds import WORLDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

ENGINES = ("local", "ray")
_NAME = "comparison"
_LABELS = {"mean_reward": "mean reward so far", "regret": "regret so far"}


@dataclass(frozen=True)
class LearnerComparison:
    """Learners in worlds over seeds: `rows`, a table as text (`str`), and `figure`."""

    rows: Table
    worlds: tuple[str, ...]
    learners: tuple[str, ...]

    def last(self, column: str = "mean_reward") -> dict[tuple[str, str], np.ndarray[Any, np.dtype[np.float64]]]:
        """Return a column after the last round, by world and learner: one value per seed."""
        world, learner, at, values = (np.asarray(self.rows[name]) for name in ("world", "learner", "round", column))
        last = at == at.max()
        return {(w, n): values[last & (world == w) & (learner == n)] for w in self.worlds for n in self.learners}

    def __str__(self) -> str:
        earned, regret = self.last("mean_reward"), self.last("regret")
        wide = max(len(name) for name in ("learner", *self.learners))
        lines = []
        for world in self.worlds:
            seeds = len(earned[world, self.learners[0]])
            lines.append(f"{world} ({seeds} seeds; ± standard error)")
            lines.append(f"{'learner':{wide}} {'mean reward':>19} {'regret':>17}")
            for name in sorted(self.learners, key=lambda name: -earned[world, name].mean()):
                cells = (
                    f"{_compared_with_error(earned[world, name], 4):>19}",
                    f"{_compared_with_error(regret[world, name], 1):>17}",
                )
                lines.append(f"{name:{wide}} {' '.join(cells)}")
            lines.append("")
        return "\n".join(lines[:-1])

    def figure(self, world: str | None = None, column: str = "regret") -> Figure:
        """Draw `regret` or `mean_reward` by round in one world: the mean over seeds, in a band of all of them."""
        if column not in _LABELS:
            raise InvalidInput(f"column: found {column!r}, {nearest(column, list(_LABELS))}")
        if world is None and len(self.worlds) == 1:
            world = self.worlds[0]
        if world not in self.worlds:
            raise InvalidInput(f"world: found {world!r}, expected one of {', '.join(self.worlds)}")
        if len(self.learners) > len(STYLES):
            raise InvalidInput(f"figure: found {len(self.learners)} learners, expected at most {len(STYLES)}")
        rows = self.rows.filter(np.asarray(self.rows["world"]) == world)
        values = np.asarray(rows[column])
        top = 1.05 * float(values.max()) or 1.0
        labels = dict(zip(self.learners, self.learners, strict=True))
        return figure_of_curves(rows, column, labels, title=world, ylabel=_LABELS[column], top=top)


def _compared_with_error(values: np.ndarray[Any, np.dtype[np.float64]], digits: int) -> str:
    if len(values) < 2:
        return f"{values.mean():.{digits}f}"
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def compare(
    learners: Mapping[str, Any] | Sequence[str],
    worlds: Mapping[str, Environment] | Sequence[str],
    seeds: int | Sequence[int] = 5,
    rounds: int = 1000,
    *,
    workers: int | None = None,
    engine: str | UnitEngine = "local",
    out: str | os.PathLike[str] | None = None,
    progress: UnitProgress | None = None,
) -> LearnerComparison:
    """Run learners in simulated worlds; return rewards and regrets. All learners of a seed play the same rounds.

    Parameters
    ----------
    learners
        By name: a learner whose settings are used, such as `o2pl.Bandit()`; the name of one of `rivals.RIVALS`; or a
        function of `(n_actions, seed, reward_range)` that returns an object with `act` and `update`. A list: rivals.
    worlds
        By name: objects with `n_actions`, `reward_range` and `sample`, see `o2pl.simulation.worlds`. A list: names of
        `worlds.WORLDS`.
    seeds
        Their number, or the seeds. Seed 3 is the same rounds in every call.
    rounds
        Rounds of each run.
    workers
        Processes; None: one per core; 1: this process. In a script with several, call `compare` under
        `if __name__ == "__main__":`. Rows do not depend on their number.
    engine
        `"local"`; `"ray"`: a local Ray; or `Ray(address)`, a cluster.
    out
        Folder for finished runs. The same call resumes, and a call with more learners, worlds or seeds computes only
        what is missing. None: nothing is kept.
    progress
        Called for each finished run: see `o2pl.simulation.run_progress`.

    Examples
    --------
    >>> from o2pl.simulation import compare
    >>> found = compare({"bandit": o2pl.Bandit(), "linucb": "linucb"}, ["digits"], seeds=3, rounds=500, out="runs")
    >>> print(found)
    >>> found.figure().savefig("regret.png")
    """
    rivals = {name: NamedRival(name) for name in RIVALS}
    chosen = {
        name: _compared_factory(name, given) for name, given in _compared_by_name("learners", learners, rivals).items()
    }
    places = _compared_by_name("worlds", worlds, WORLDS)
    numbers = sorted(set(range(seeds) if isinstance(seeds, int) else seeds))
    if not chosen or not places or not numbers:
        raise InvalidInput("compare: found no learner, no world or no seed, expected at least one of each")
    experiment = Experiment(
        _NAME, "", {"quick": Size(rounds, len(numbers))}, lambda _: crossed_units(places, chosen),
        PlayUnit(places, chosen),
        COLUMNS, headline="mean_reward",
    )  # fmt: skip
    computing = _comparing_engine(engine, workers)
    if isinstance(computing, Local):
        _check_compared_can_be_sent(chosen, places)
    options = Options(rounds=rounds, seeds=numbers, learners=list(chosen))
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if out is None else out
        report = run(experiment, options, out=folder, engine=computing, progress=progress)
        if report.failures:
            raise InvalidInput(_failed_comparison(report, None if out is None else Path(out) / _NAME))
        rows = results(folder, _NAME).drop_columns(["unit", "rounds", "settings"])
    return LearnerComparison(rows, tuple(places), tuple(chosen))


def _compared_by_name(what: str, given: Mapping[str, Any] | Sequence[str], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return objects by name; texts stand for known ones."""
    by_name = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
    for name, one in by_name.items():
        if isinstance(one, str):
            if one not in known:
                raise InvalidInput(f"{what}: found {one!r}, {nearest(one, list(known))}")
            by_name[name] = known[one]
    return by_name


def _compared_factory(name: str, given: object) -> MakeLearner[Any]:
    if isinstance(given, Parameters):
        return LikeTemplate(given)
    if not callable(given):
        raise InvalidInput(
            f"learners, {name!r}: found a {type(given).__name__}, expected a learner such as o2pl.Bandit(), the name of"
            " a rival, or a function of (n_actions, seed, reward_range)"
        )
    make: MakeLearner[Any] = given
    return make


def _comparing_engine(engine: str | UnitEngine, workers: int | None) -> UnitEngine:
    if not isinstance(engine, str):
        if workers is not None:
            raise InvalidInput("workers: found with an engine object, expected as a setting of the object")
        return engine
    if engine not in ENGINES:
        raise InvalidInput(f"engine: found {engine!r}, {nearest(engine, ENGINES)}")
    if engine == "ray":
        return Ray(workers=workers)
    return InProcess() if workers == 1 else Local(workers)


def _check_compared_can_be_sent(learners: Mapping[str, object], worlds: Mapping[str, object]) -> None:
    for what, named in (("learners", learners), ("worlds", worlds)):
        for name, one in named.items():
            try:
                pickle.dumps(one)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise InvalidInput(
                    f"{what}, {name!r}: cannot be sent to other processes ({error}); define it at the top of a module,"
                    " or use workers=1"
                ) from None


def _failed_comparison(report: Report, folder: Path | None) -> str:
    unit, reason = report.failures[0]
    kept = "" if folder is None else f". Tracebacks: {folder}/failed-*.txt; finished runs are kept there"
    return (
        f"compare: {len(report.failures)} of {report.units} runs failed, the first in world {unit.world['name']!r} with"
        f" learner {unit.learner['name']!r} and seed {unit.seed}: {reason}{kept}"
    )
