"""The command line. Heavy modules are imported only by the commands that need them."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2pl import __version__
from o2pl.demo.command import demo
from o2pl.errors import InvalidInput, MissingExtra, nearest
from o2pl.fitting import streamed
from o2pl.fitting.command import fit_log
from o2pl.formats import command as log_commands
from o2pl.serving import commands as store_commands
from o2pl.serving import models_commands
from o2pl.serving.command import serve
from o2pl.serving.explain_command import explain
from o2pl.serving.simulate import simulate
from o2pl.serving.train_command import train

if TYPE_CHECKING:
    from o2pl.experiments.engines import Engine
    from o2pl.experiments.experiment import Experiment, Options
    from o2pl.experiments.progress import Progress

FAILED, MISUSED, INTERRUPTED = 1, 2, 130  # exit codes; shells expect 130 after Ctrl-C

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,  # local variables may contain API keys
    help="Contextual bandits: learn from logs, evaluate policies, serve decisions, run the paper's experiments.",
    epilog="If you have a log: `o2pl describe LOG`. To serve decisions: `o2pl serve`. To compare learners: `o2pl"
    " demo`.",
)


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
    """Report an error that the user can fix as one line instead of a traceback."""
    try:
        yield
    except (InvalidInput, MissingExtra) as error:
        typer.echo(f"o2pl: {error}", err=True)
        raise typer.Exit(MISUSED) from None
    except BrokenPipeError:  # the reader has closed the pipe: leave that to the shell
        raise
    except OSError as error:  # disk full, no write permission, no such folder
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"o2pl: {where}{error.strerror or error}. No partial file was left behind.", err=True)
        raise typer.Exit(FAILED) from None


def main() -> None:
    app()


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"o2pl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Contextual bandits: learn from logs, evaluate policies, serve decisions, run the paper's experiments."""


Out = Annotated[Path, typer.Option(help="Folder for results. Finished results in it are reused, not computed again.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder with your own data sets: `<id>_<name>.parquet`, last column `target`."),
]
EngineName = Annotated[str, typer.Option("--engine", help="`local`: processes on this machine; `ray`: a Ray cluster.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of units to run in parallel. [default: one per core]")]
Address = Annotated[
    str | None,
    typer.Option(help="Ray only: address of a running cluster, such as `auto`. [default: start a local one]"),
]


@app.command("list")
def list_experiments(
    data: Annotated[
        Path | None, typer.Option(help="Folder with your own data sets, to include them in the list.")
    ] = None,
) -> None:
    """List the experiments with their sizes, learners and data sets."""
    from rich.console import Console
    from rich.table import Table

    from o2pl.experiments import EXPERIMENTS
    from o2pl.experiments.experiment import Options

    console = Console()
    with _one_line_errors():
        folder = _data_folder(data)
    for experiment in EXPERIMENTS.values():
        cells = experiment.cells(folder)
        table = Table(show_header=False, box=None)
        for name, size in experiment.sizes.items():
            units = len(experiment.units(Options(name, data=folder)))
            table.add_row(f"--{name}", f"{units} units: {size.seeds} seeds, {size.rounds} rounds each")
        table.add_row("--learners", ", ".join(dict.fromkeys(str(cell.learner["name"]) for cell in cells)))
        table.add_row("--datasets", ", ".join(dict.fromkeys(str(cell.world["name"]) for cell in cells)))
        console.print(f"[bold]{experiment.name}[/]: {experiment.summary}", highlight=False)
        console.print(table)
        console.print()


@app.command(
    epilog="""
Examples:

`o2pl run wheel` runs the wheel experiment at its small size. Run it again to resume it.

`o2pl run wheel --full --seeds 5 --learners o2pl,linucb --out results` runs the full size for two learners.

`o2pl run wheel --full --seeds 5-9 --out results` runs five more seeds, for example on another machine.

`o2pl run wheel/17` runs only unit 17.
"""
)
def run(
    name: Annotated[
        str, typer.Argument(metavar="NAME[/NUMBER]", help="An experiment (see `o2pl list`), or one unit of it.")
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
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Run an experiment, or resume it.

    An experiment is a table of units; each unit is a data set, a learner and a seed. Each unit is saved under `--out`
    as soon as it finishes. You can stop a run at any time; the same command resumes it. The rows of all units are
    written to `<out>/<name>.parquet`. They do not depend on the engine or the number of workers. Results of different
    settings are stored separately. To recompute an experiment, delete `<out>/<name>`.
    """
    from o2pl.experiments.experiment import Options

    with _one_line_errors():
        experiment, number = _find(name)
        chosen = Options(
            "quick" if quick else "full",
            rounds,
            _seeds(seeds),
            _names(learners),
            _names(datasets),
            _data_folder(data),
        )
        _run(experiment, chosen, out, number, _engine(engine, workers, address))


@app.command()
def reproduce(
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Small size (minutes) or the paper's size (hours).")
    ] = True,
    out: Out = Path("out/reproduction"),
    data: Data = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
) -> None:
    """Run all experiments of the paper, and report each claim with our result and a verdict.

    You can stop it at any time; the same command resumes it. The report is `<out>/index.html`, one page that works
    offline. The claims are also in `<out>/summary.json`.
    """
    from rich.console import Console

    from o2pl.experiments import reproduction, studies
    from o2pl.experiments.experiment import Options
    from o2pl.extras import require_extra

    with _one_line_errors():
        require_extra("experiments", "running experiments")
        chosen = Options("quick" if quick else "full", data=_data_folder(data))
        for study in studies.STUDIES:
            _say_left_out(study.experiment, chosen)
        try:
            sections, failures = reproduction.reproduce(
                out,
                chosen.size,
                data=chosen.data,
                engine=_engine(engine, workers, address),
                progress=_progress(Console(stderr=True)),
            )
        except KeyboardInterrupt:
            typer.echo(f"stopped. Finished units are saved in {out}. To resume: {_command()}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        _say_found(sections, out)
        if quick:
            typer.echo(
                "this was the small size: few seeds decide little, so most claims stay undecided; --full decides"
            )
    for unit, reason in failures:
        typer.echo(f"failed: {unit.id}: {reason}", err=True)
    if failures:
        raise typer.Exit(FAILED)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The results folder of `o2pl reproduce`.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder for the report. The rows are copied there, compressed.")
    ] = None,
    readme: Annotated[
        Path | None, typer.Option(help="A README whose generated lines (between markers) are updated.")
    ] = None,
) -> None:
    """Rebuild the figures and the report from stored rows, without running anything."""
    from o2pl.experiments import readme as readmes
    from o2pl.experiments import report as reports
    from o2pl.experiments import studies

    with _one_line_errors():
        if not folder.is_dir():
            raise InvalidInput(f"folder: found no {str(folder)!r}, expected the results folder of `o2pl reproduce`")
        sections = reports.publish(folder, to, studies.STUDIES) if to else reports.build(folder, studies.STUDIES)
        if readme is not None:
            readmes.update(readme, to or folder, studies.STUDIES)
        _say_found(sections, to or folder)


@app.command(
    "evaluate",
    epilog="""
Example:

`o2pl evaluate log.parquet --policy model.o2pl --baseline logged --rewards 0,1` compares a saved learner with the
policy that made the log.

`o2pl evaluate log.parquet --policy a.o2pl --policy b.o2pl --policy logged --rewards 0,1` says which is best, which are
worse with confidence, and how many more rows are needed to decide.
""",
)
def evaluate_policy(
    log: log_commands.Log,
    policy: Annotated[
        list[str], typer.Option(help="A saved learner, `uniform` or `logged`. Repeat to compare several.")
    ],
    baseline: Annotated[
        str | None, typer.Option(help="Policy to compare with: `uniform`, `logged` or a saved learner.")
    ] = None,
    at_any_time: Annotated[
        bool,
        typer.Option("--at-any-time", help="Anytime-valid confidence intervals; also valid for the log of a learner."),
    ] = False,
    delta: Annotated[
        float, typer.Option(help="Error probability: a confidence interval holds with probability 1 - delta.")
    ] = 0.05,
    rewards: Annotated[str | None, typer.Option(help="Lowest and highest possible reward, such as `0,1`.")] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Path of the figure, PNG or SVG. [default: evaluation.png]")
    ] = None,
    propensities: Annotated[
        str,
        typer.Option(
            help="`logged`; `estimated` from the contexts; `auto`: the logged ones, or estimates where they are missing"
            " or do not match the actions."
        ),
    ] = "auto",
    segments: Annotated[
        str | None,
        typer.Option(help="With several policies: a context column; results are shown for each of its values."),
    ] = None,
    rows_per_day: Annotated[
        float | None,
        typer.Option(help="With several policies: rows logged per day, to estimate the days until a decision."),
    ] = None,
    skip_bad: log_commands.SkipBad = 0,
    out_of_core: streamed.OutOfCore = None,
    memory: streamed.Memory = None,
    engine: streamed.EngineName = "local",
    workers: streamed.Workers = None,
    address: streamed.Address = None,
) -> None:
    """Estimate what a policy would have earned on a log, with confidence intervals, warnings and a figure."""
    from rich.console import Console

    from o2pl.evaluation import command

    with _one_line_errors():
        ends = None if rewards is None else command.reward_range(rewards)
        if streamed.is_streamed(log, out_of_core, memory, engine, workers, address):
            if at_any_time or segments is not None or rows_per_day is not None or propensities != "auto":
                raise InvalidInput(
                    "--at-any-time, --segments, --rows-per-day or --propensities: found with a log larger than"
                    " memory, expected --in-memory as well"
                )
            large = streamed.evaluate_streamed(log, policy, baseline, ends, delta, skip_bad, engine, workers, address)
            command.show(large, figure, Console())
            return
        found = log_commands.read_and_say(log, ends, skip_bad, need_propensities=False)
        of_several = (segments, rows_per_day)
        command.evaluate_files(
            found, policy, baseline, at_any_time, delta, figure, Console(), propensities, *of_several
        )


app.command("demo", epilog="`o2pl demo`, then open the page. `o2pl reproduce` runs the paper's experiments.")(
    _one_line_errors()(demo)
)
app.command(
    "convert",
    epilog="`o2pl convert vw.dsjson log.parquet`; `o2pl convert log.parquet vw2.dsjson` (VW learns the same from"
    " both).",
)(_one_line_errors()(log_commands.convert))
app.command("describe", epilog="`o2pl describe log.parquet` also suggests the next command.")(
    _one_line_errors()(log_commands.describe_log)
)
app.command(
    "fit",
    epilog="`o2pl fit log.parquet --out model.o2pl --rewards 0,1`; `o2pl evaluate newer.parquet --policy model.o2pl`.",
)(_one_line_errors()(fit_log))
app.command(
    "explain",
    epilog="""`o2pl explain model.o2pl --context '{"age": 31, "city": "Rome"}' --figure why.png`;
`o2pl explain model.o2pl --row 17 --log log.parquet`; `o2pl explain EVENT --database o2pl.sqlite` (service).""",
)(_one_line_errors()(explain))
app.command(
    "simulate", epilog="`o2pl serve` in one terminal, `o2pl simulate http://127.0.0.1:8000 --key KEY` in another."
)(_one_line_errors()(simulate))
app.command("train", epilog="`o2pl train --follow --database postgresql://me@host/o2pl --guard`.")(
    _one_line_errors()(train)
)

app.command(
    "serve", epilog="`o2pl serve` needs no configuration; `o2pl serve --database postgresql://…` for several servers."
)(_one_line_errors()(serve))


applications = typer.Typer(no_args_is_help=True, help="Manage the applications of the decision service and their keys.")
applications.command("add", epilog="`o2pl app add shop`; `o2pl app add banner --kind fixed --actions red,blue`.")(
    _one_line_errors()(store_commands.add)
)
applications.command("list")(_one_line_errors()(store_commands.list_applications))
applications.command("key", epilog="`o2pl app key shop --role read`.")(_one_line_errors()(store_commands.new_key))
app.add_typer(applications, name="app")
versions = typer.Typer(no_args_is_help=True, help="Manage the model versions of the decision service.")
for name, command in models_commands.COMMANDS.items():
    versions.command(name)(_one_line_errors()(command))
app.add_typer(versions, name="models")
app.command("backup", epilog="`o2pl backup backup.sqlite`.")(_one_line_errors()(store_commands.back_up))
app.command("export", epilog="`o2pl export log.parquet`, then `o2pl describe log.parquet`.")(
    _one_line_errors()(store_commands.export_log)
)
app.command("forget", epilog="`o2pl forget --where user.id=17`.")(_one_line_errors()(store_commands.forget_person))
app.command("retain", epilog="`o2pl retain --days 90 --archive old`.")(_one_line_errors()(store_commands.retain))


@app.command("warm-up")
def warm_up_kernels() -> None:
    """Compile all kernels now instead of at first use: in a container image, or before a service starts.

    Compiled kernels are cached in `NUMBA_CACHE_DIR` if it is set, else in the package's folder, else in the user's
    cache folder. The cache is valid for this processor, Python version and o2pl version only.
    """
    from o2pl import warm_up
    from o2pl.compiled import folders
    from o2pl.extras import missing

    seconds = warm_up()
    if not missing("serve"):
        from o2pl.serving.learning import warm_up_training

        began = time.perf_counter()
        warm_up_training()
        seconds += time.perf_counter() - began
    kept = os.path.commonpath(folders()) if folders() else "memory only: no cache folder is writable"
    typer.echo(f"ready after {seconds:.0f} s; kernels are cached in {kept}")


def _say_found(sections: Any, out: Path) -> None:
    """A line for each study; the report has every claim."""
    from o2pl.experiments.study import VERDICTS

    def said(verdicts: list[str]) -> str:
        return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts)

    found = {section.study.title: [claim.verdict for claim in section.claims] for section in sections}
    for title, verdicts in found.items():
        typer.echo(f"{title}: {said(verdicts) or 'no claims'}")
    every = [verdict for verdicts in found.values() for verdict in verdicts]
    typer.echo(f"{len(every)} claims: {said(every)}")
    typer.echo(f"report: {out / 'index.html'}")


def _find(name: str) -> tuple[Experiment, int | None]:
    from o2pl.experiments import EXPERIMENTS

    wanted, slash, number = name.partition("/")
    if wanted not in EXPERIMENTS:
        raise InvalidInput(f"experiment: found {wanted!r}, {nearest(wanted, EXPERIMENTS)}")
    if slash and not number.isdecimal():
        raise InvalidInput(f"unit: found {number!r}, expected a number, such as {wanted}/17")
    return EXPERIMENTS[wanted], int(number) if slash else None


def _run(experiment: Experiment, options: Options, out: Path, number: int | None, engine: Engine) -> None:
    """Run the experiment, print the results, and exit with the right status."""
    from rich.console import Console

    from o2pl.experiments import reproduction, runner, store, summary
    from o2pl.extras import require_extra

    require_extra("experiments", "running experiments")  # before anything is printed
    screen = Console(stderr=True)
    if number is None:
        _say_left_out(experiment, options)
    else:
        unit = experiment.unit(number, options)
        typer.echo(f"{unit.id}: {unit.settings}", err=True)
    try:
        report = runner.run(experiment, options, out=out, number=number, engine=engine, progress=_progress(screen))
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
    from o2pl.extras import install_command

    for learner, extra in experiment.left_out(options).items():
        typer.echo(f"{experiment.name}: {learner} is skipped; to run it: {install_command(extra)}", err=True)


def _progress(screen: Any) -> Progress:
    from o2pl.compiled import say_if_first
    from o2pl.experiments.progress import Bar, Plain

    say_if_first()
    return Bar(screen) if screen.is_terminal else Plain(lambda line: typer.echo(line, err=True))


def _engine(name: str, workers: int | None, address: str | None) -> Engine:
    from o2pl.experiments.engines import Local, Ray

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
    return shlex.join(["o2pl", *sys.argv[1:]])


if __name__ == "__main__":
    main()
