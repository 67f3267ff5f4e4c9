"""`o2pl simulate`."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean as mean
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from o2pl.serving.simulate import Played

EXAMPLES = "`o2pl serve` in one terminal, `o2pl simulate http://127.0.0.1:8000 --key KEY` in another."


def simulate(
    url: Annotated[str, typer.Argument(help="URL of the service, such as `http://127.0.0.1:8000`.")],
    key: Annotated[str, typer.Option(envvar="O2PL_KEY", help="Write key of the application.")],
    calls: Annotated[int, typer.Option(min=1, help="Number of simulated readers.")] = 3000,
    rate: Annotated[float, typer.Option(min=0, help="Readers per second. 0: no limit.")] = 50,
    clients: Annotated[int, typer.Option(min=1, help="Number of parallel clients.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the simulated readers.")] = 0,
    only_clicks: Annotated[
        bool, typer.Option("--only-clicks", help="Send rewards for clicks only; other events get the default reward.")
    ] = False,
) -> None:
    """Send simulated readers of a news page to a running service, and show how its regret decreases.

    Each reader sees one of six articles and clicks on it or not. All click probabilities are known. So each output line
    can show the expected reward of the service, of the best article, of the editor's choice and of a random article.
    The regret is the difference between the best article and the service, per call.
    """
    from o2pl.serving.simulate import visits

    said = _Lines(calls)
    for played in visits(url, key, calls, clients=clients, rate=rate, seed=seed, only_clicks=only_clicks):
        said.add(played)
    said.end()


class _Lines:
    """Prints ten lines, each for a tenth of the calls."""

    def __init__(self, calls: int, say: Callable[[str], None] = typer.echo) -> None:
        self._every, self._say = max(calls // 10, 1), say
        self._rows: list[Played] = []
        self._regrets: list[float] = []
        self._count = 0
        say("   calls   reward   clicks expected: service    best   editor   random   regret per call")

    def add(self, played: Played) -> None:
        self._rows.append(played)
        self._count += 1
        if len(self._rows) >= self._every:
            self._line()

    def _line(self) -> None:
        earned, chosen, best, uniform, editor = (mean(column) for column in zip(*self._rows, strict=True))
        self._regrets.append(best - chosen)
        self._say(
            f"{self._count:8,}   {earned:6.3f}   {chosen:24.3f}   {best:5.3f}   {editor:6.3f}   {uniform:6.3f}"
            f"   {best - chosen:15.3f}"
        )
        self._rows = []

    def end(self) -> None:
        if self._rows:
            self._line()
        if len(self._regrets) > 1:
            first, last = self._regrets[0], self._regrets[-1]
            self._say(f"regret per call: {first:.3f} at the start, {last:.3f} at the end")
