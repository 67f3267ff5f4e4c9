"""`o2pl-reproduction`: list, run, reproduce, report. Heavy modules are imported only by the commands that need them."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2pl.cli.errors import one_line_errors
from o2pl.errors import InvalidInput, nearest

if TYPE_CHECKING:
    from o2pl.simulation.engines import UnitEngine
    from o2pl.simulation.experiment import Experiment, Options
    from o2pl.simulation.run_progress import UnitProgress

FAILED, INTERRUPTED = 1, 130  # exit codes; shells expect 130 after Ctrl-C
SIZES = ("quick", "full")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Run the experiments of the paper and our own, and report each claim with a verdict.",
    epilog="`o2pl-reproduction reproduce` runs all of them at a small size.",
)

Out = Annotated[Path, typer.Option(help="Folder for results. Finished results in it are reused, not computed again.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder with your own data sets: `<id>_<name>.parquet`, last column `target`."),
]
Keep = Annotated[
    bool,
    typer.Option(
        "--keep", help="Also reuse rows that other sources of o2pl computed, such as those of an older algorithm."
    ),
]
EngineName = Annotated[str, typer.Option("--engine", help="`local`: processes on this machine; `ray`: a Ray cluster.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of units to run in parallel. [default: one per core]")]
Address = Annotated[
    str | None,
    typer.Option(help="Ray only: address of a running cluster, such as `auto`. [default: start a local one]"),
]


def list_experiments(
    name: Annotated[str | None, typer.Argument(help="An experiment, to see its learners and data sets.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with your own data sets, to include them in the list.")
    ] = None,
) -> None:
    """List the experiments and their sizes, or what one of them consists of."""
    from rich.console import Console
    from rich.table import Table

    from o2pl_reproduction.registry import EXPERIMENTS

    console, folder = Console(), _data_folder(data)
    if name is not None:
        _describe(_find(name)[0], folder, console)
        return
    table = Table("experiment", "what it does", "quick", "full", box=None, padding=(0, 2, 1, 0))
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.name, experiment.summary, *(_size(experiment, size, folder) for size in SIZES))
    console.print(table)
    console.print(
        "Sizes are units (one data set, one learner, one seed). Details: o2pl-reproduction list NAME."
        " To run: o2pl-reproduction run NAME"
    )


def _size(experiment: Experiment, size: str, folder: str | None) -> str:
    from o2pl.simulation.experiment import Options

    return f"{len(experiment.units(Options(size, data=folder))):,}"


def _describe(experiment: Experiment, folder: str | None, console: Any) -> None:
    from rich.table import Table

    cells = experiment.cells(folder)
    table = Table(show_header=False, box=None)
    for name, size in experiment.sizes.items():
        units = _size(experiment, name, folder)
        table.add_row(f"--{name}", f"{units} units: {size.seeds} seeds, {size.rounds:,} rounds each")
    table.add_row("--learners", ", ".join(dict.fromkeys(str(cell.learner["name"]) for cell in cells)))
    table.add_row("--datasets", ", ".join(dict.fromkeys(str(cell.world["name"]) for cell in cells)))
    console.print(f"[bold]{experiment.name}[/]: {experiment.summary}", highlight=False)
    console.print(table)


RUN_EXAMPLES = """
Examples:

`o2pl-reproduction run wheel` runs the wheel experiment at its small size. Run it again to resume it.

`o2pl-reproduction run wheel --full --seeds 5 --learners o2pl,linucb --out results` runs the full size for two learners.

`o2pl-reproduction run wheel --full --seeds 5-9 --out results` runs five more seeds, for example on another machine.

`o2pl-reproduction run wheel/17` runs only unit 17.
"""


def run(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME[/NUMBER]", help="An experiment (see `o2pl-reproduction list`), or one unit of it."
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick/--full", help="Small size (minutes) or full size.")] = True,
    seeds: Annotated[
        str | None, typer.Option(help="`5`: the first five seeds; `5-9`: seeds 5 to 9. [default: set by the size]")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Horizon: rounds per unit. [default: set by the size]")
    ] = None,
    learners: Annotated[
        str | None, typer.Option(help="Comma-separated names of learners to run. [default: all]")
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Comma-separated names of data sets to run. [default: all]")
    ] = None,
    data: Data = None,
    out: Out = Path("out"),
    keep: Keep = False,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Run an experiment, or resume it.

    An experiment is a table of units; each unit is a data set, a learner and a seed. Each unit is saved under `--out`
    as soon as it finishes. You can stop a run at any time; the same command resumes it. The rows of all units are
    written to `<out>/<name>.parquet`. They do not depend on the engine or the number of workers. Results of different
    settings are stored separately. Rows that an older o2pl computed with other sources are computed again, unless
    `--keep`. To recompute an experiment, delete `<out>/<name>`.
    """
    from o2pl.simulation.experiment import Options

    experiment, number = _find(name)
    chosen = Options(
        "quick" if quick else "full",
        rounds,
        _seeds(seeds),
        _names(learners),
        _names(datasets),
        _data_folder(data),
    )
    _run(experiment, chosen, out, number, _engine(engine, workers, address), keep)


def reproduce(
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Small size (minutes) or the paper's size (hours).")
    ] = True,
    out: Out = Path("out/reproduction"),
    data: Data = None,
    keep: Keep = False,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Run all experiments of the paper, and report each claim with our result and a verdict.

    You can stop it at any time; the same command resumes it. The report is `<out>/index.html`, one page that works
    offline. The claims are also in `<out>/summary.json`.
    """
    from rich.console import Console

    from o2pl.extras import require_extra
    from o2pl.simulation.experiment import Options
    from o2pl_reproduction import registry, reproduction

    require_extra("experiments", "running experiments")
    chosen = Options("quick" if quick else "full", data=_data_folder(data))
    for study in registry.STUDIES:
        _say_left_out(study.experiment, chosen)
    try:
        sections, failures = reproduction.reproduce(
            out,
            chosen.size,
            data=chosen.data,
            engine=_engine(engine, workers, address),
            progress=_progress(Console(stderr=True)),
            keep=keep,
        )
    except KeyboardInterrupt:
        typer.echo(f"stopped. Finished units are saved in {out}. To resume: {_command()}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _say_found(sections, out)
    if quick:
        typer.echo("this was the small size: few seeds decide little, so most claims stay undecided; --full decides")
    for unit, reason in failures:
        typer.echo(f"failed: {unit.id}: {reason}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def report(
    folder: Annotated[Path, typer.Argument(help="The results folder of `o2pl-reproduction reproduce`.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder for the report. The rows are copied there, compressed.")
    ] = None,
    readme: Annotated[
        Path | None, typer.Option(help="A README whose generated lines (between markers) are updated.")
    ] = None,
) -> None:
    """Rebuild the figures and the report from stored rows, without running anything."""
    from o2pl_reproduction import registry
    from o2pl_reproduction.reports import readme as readmes
    from o2pl_reproduction.reports import report as reports

    if not folder.is_dir():
        raise InvalidInput(
            f"folder: found no {str(folder)!r}, expected the results folder of `o2pl-reproduction reproduce`"
        )
    sections = reports.publish(folder, to, registry.STUDIES) if to else reports.build(folder, registry.STUDIES)
    if readme is not None:
        readmes.update(readme, to or folder)
    _say_found(sections, to or folder)


def _say_found(sections: Any, out: Path) -> None:
    """A line for each study; the report has every claim."""
    from o2pl_reproduction.claims.study import VERDICTS

    def said(verdicts: list[str]) -> str:
        return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts)

    found = {section.study.title: [claim.verdict for claim in section.claims] for section in sections}
    for title, verdicts in found.items():
        typer.echo(f"{title}: {said(verdicts) or 'no claims'}")
    every = [verdict for verdicts in found.values() for verdict in verdicts]
    typer.echo(f"{len(every)} claims: {said(every)}")
    typer.echo(f"report: {out / 'index.html'}")


def _find(name: str) -> tuple[Experiment, int | None]:
    from o2pl_reproduction.registry import EXPERIMENTS

    wanted, slash, number = name.partition("/")
    if wanted not in EXPERIMENTS:
        raise InvalidInput(f"experiment: found {wanted!r}, {nearest(wanted, EXPERIMENTS)}")
    if slash and not number.isdecimal():
        raise InvalidInput(f"unit: found {number!r}, expected a number, such as {wanted}/17")
    return EXPERIMENTS[wanted], int(number) if slash else None


def _run(
    experiment: Experiment, options: Options, out: Path, number: int | None, engine: UnitEngine, keep: bool
) -> None:
    """Run the experiment, print the results, and exit with the right status."""
    from rich.console import Console

    from o2pl.extras import require_extra
    from o2pl.simulation import runner, store
    from o2pl_reproduction import reproduction
    from o2pl_reproduction.claims import summary

    require_extra("experiments", "running experiments")  # before anything is printed
    screen = Console(stderr=True)
    if number is None:
        _say_left_out(experiment, options)
    else:
        unit = experiment.unit(number, options)
        typer.echo(f"{unit.id}: {unit.settings}", err=True)
    try:
        report = runner.run(
            experiment, options, out=out, number=number, engine=engine, progress=_progress(screen), keep=keep
        )
    except KeyboardInterrupt:
        typer.echo(f"stopped. Finished units are saved in {out}. To resume: {_command()}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if report.computed and number is None:
        reproduction.remember(out, experiment.name, options.size)
    if report.table is not None:
        typer.echo(f"{experiment.headline.replace('_', ' ')} at the end, mean over seeds ± standard error")
        Console().print(summary.screen_table(store.results(out, report.table.stem), experiment.headline))
        typer.echo(f"rows: {report.table}")
    if report.failures:
        typer.echo(f"{len(report.failures)} of {report.units} units failed:", err=True)
        for unit, reason in report.failures:
            typer.echo(f"  {unit.id}: {reason}", err=True)
        typer.echo(f"tracebacks: {out / experiment.name}/failed-*.txt; to retry: {_command()}", err=True)
        raise typer.Exit(FAILED)


def _say_left_out(experiment: Experiment, options: Options) -> None:
    from o2pl.extras import extra_install_command

    for learner, extra in experiment.left_out(options).items():
        typer.echo(f"{experiment.name}: {learner} is skipped; to run it: {extra_install_command(extra)}", err=True)


def _progress(screen: Any) -> UnitProgress:
    from o2pl.simulation.run_progress import Plain, ProgressBar

    return ProgressBar(screen) if screen.is_terminal else Plain(lambda line: typer.echo(line, err=True))


def _engine(name: str, workers: int | None, address: str | None) -> UnitEngine:
    from o2pl.simulation.engines import Local, Ray

    if name == "ray":
        return Ray(address, workers)
    if name != "local":
        raise InvalidInput(f"engine: found {name!r}, expected 'local' or 'ray'")
    if address is not None:
        raise InvalidInput("address: found with --engine local, expected only with --engine ray")
    return Local(workers)


def _seeds(text: str | None) -> range | None:
    """`5` -> 0 to 4; `5-9` -> 5 to 9."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else not last)):
        raise InvalidInput(f"seeds: found {text!r}, expected a number such as 5 or a range such as 5-9")
    return range(int(first), int(last) + 1) if dash else range(int(first))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _data_folder(given: Path | None) -> str | None:
    """Return `--data` or O2PL_DATA as an absolute path: workers may run in another folder."""
    folder = given or os.environ.get("O2PL_DATA") or None
    if folder is None:
        return None
    if not Path(folder).is_dir():
        raise InvalidInput(f"data: found no folder {str(folder)!r}, expected one with Parquet files")
    return str(Path(folder).resolve())


def _command() -> str:
    return shlex.join(["o2pl-reproduction", *sys.argv[1:]])


app.command("list", epilog="`o2pl-reproduction list`, then `o2pl-reproduction list wheel`.")(
    one_line_errors()(list_experiments)
)
app.command("run", epilog=RUN_EXAMPLES)(one_line_errors()(run))
app.command("reproduce")(one_line_errors()(reproduce))
app.command("report")(one_line_errors()(report))


def main() -> None:
    app()


if __name__ == "__main__":
    main()
