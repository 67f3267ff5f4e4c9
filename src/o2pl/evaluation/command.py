"""The body of `o2pl evaluate`: load the policies, evaluate them, print the table and draw the figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from o2pl.errors import InvalidInput, nearest
from o2pl.extras import install_command, missing, require_extra

if TYPE_CHECKING:
    from o2pl.data.interactions import Interactions
    from o2pl.evaluation.candidates import Candidates
    from o2pl.evaluation.metrics import Metric, Metrics
    from o2pl.evaluation.results import Evaluation


def named_policy(text: str, what: str = "policy") -> Any:
    """Return `uniform`, `logged`, or the learner loaded from a file."""
    from o2pl.learners.base import load

    if text in ("uniform", "logged"):
        return text
    if not Path(text).is_file():
        around = Path(text).parent
        files = [str(path) for path in around.glob("*.o2pl")] if around.is_dir() else []
        close = nearest(text, ["uniform", "logged", *files])
        meant = f"{close}, or" if " one of " not in close else "expected 'uniform', 'logged' or"
        raise InvalidInput(f"{what}: found no file {text!r}, {meant} a saved learner")
    return load(text)


def reward_range(text: str, option: str = "rewards") -> tuple[float, float]:
    """Parse a reward range: `0,1` -> (0, 1)."""
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError:
        raise InvalidInput(f"{option}: found {text!r}, expected two numbers such as 0,1") from None
    return low, high


def metrics_asked(names: Sequence[str], fewer: Sequence[str], worse: Sequence[str]) -> dict[str, Metric] | None:
    """Return the metrics of the options `--metric`, `--fewer-is-better` and `--at-most-worse`; None: there are none."""
    from o2pl.evaluation.metrics import metrics_of

    return metrics_of(names, fewer, worse) or None


def evaluate_files(
    log: Interactions,
    policies: Sequence[str],
    baseline: str | None,
    at_any_time: bool,
    delta: float,
    figure: Path | None,
    console: Any,
    propensities: str = "auto",
    segments: str | None = None,
    rows_per_day: float | None = None,
    metrics: dict[str, Metric] | None = None,
    control: tuple[str | None, float | None] = (None, None),
    truncate: tuple[float, float] | None = None,
) -> Evaluation | Candidates | Metrics:
    """Evaluate, print and draw to `figure`. The default, `evaluation.png`, is skipped if plotting is not available.

    Several metrics have no figure. control: the column of the control group and its share.
    """
    from o2pl.evaluation.evaluate import evaluate

    if metrics and figure is not None:
        raise InvalidInput("--figure: found with --metric, which has none; expected one of them")

    if figure is not None:
        require_extra("plots", "drawing figures")
    against = baseline if baseline in (None, "control") else named_policy(baseline, "baseline")
    settings: Any = {"at_any_time": at_any_time, "delta": delta, "propensities": propensities}
    settings |= {"segments": segments, "rows_per_day": rows_per_day}
    settings |= {"control": control[0], "control_share": control[1], "truncate": truncate}
    given = {name: named_policy(name) for name in policies}
    asked: Any = given if len(given) > 1 else next(iter(given.values()))
    if metrics:
        measured: Metrics = evaluate(log, asked, baseline=against, metrics=metrics, **settings)
        console.print(str(measured), highlight=False, markup=False)
        return measured
    found: Evaluation | Candidates = evaluate(log, asked, baseline=against, **settings)
    show(found, figure, console)
    return found


def show(found: Evaluation | Candidates, figure: Path | None, console: Any) -> None:
    """Print the result and draw the figure."""
    from o2pl.evaluation import candidates_report
    from o2pl.evaluation.candidates import Candidates
    from o2pl.evaluation.figures import save_evaluation
    from o2pl.evaluation.render import as_table, summary_lines

    console.print(candidates_report.as_table(found.overall) if isinstance(found, Candidates) else as_table(found))
    lines = candidates_report.summary_lines(found) if isinstance(found, Candidates) else summary_lines(found)
    for line in ("", *lines):
        console.print(line, highlight=False, markup=False)
    if figure is None and missing("plots"):
        drawn = f"not drawn; to draw it: {install_command('plots')}"
    else:
        drawn = str(save_evaluation(found, figure or Path("evaluation.png")))
    console.print(f"figure: {drawn}", highlight=False, markup=False)
