"""README's table of o2pl beside its peers: every number is a stored one, and whoever is ahead is bold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.table import BENCH, ELSEWHERE

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- peers: written by benchmarks/readme_table.py -->", "<!-- end of peers -->"
Results = Mapping[str, Any]


class Measured(NamedTuple):
    """A row of the bench. `ours` and `theirs`: keys of the stored row; low numbers are better where `low` is set."""

    row: str
    what: str
    form: str
    ours: str = "o2pl"
    theirs: str = "peer"
    low: bool = False


class Said(NamedTuple):
    """What is there or not, with a link to what shows it."""

    what: str
    link: str
    ours: str
    theirs: str


def reward(row: str, what: str) -> Measured:
    return Measured(row, what, "{:.3f}", "our_reward", "peer_reward")


NO, YES = "–", "**yes**"
PEERS: dict[str, tuple[Measured | Said, ...]] = {
    "[Vowpal Wabbit](docs/from-vw.md)": (
        reward("bakeoff_cpu_loop", "mean reward on 41 data sets; VW greedy, tuned"),
        reward("loop_continuous_demand", "reward per price; VW `--cats`"),
        Measured("default_act", "µs for a decision in Python", "{:.1f}", low=True),
        Measured("default_loop_20x5", "rounds per second in a Python loop", "{:,.0f}"),
        Measured("loop_sparse", "the same on words", "{:,.0f}"),
        Measured("bakeoff_cpu", "CPU seconds for whole files; VW's own driver", "{:.1f}", low=True),
        Said("intervals that hold whenever you look", "tests/evaluation/test_sequences.py", YES, NO),
        Said("learning on many machines at once", "docs/limits.md", NO, YES),
    ),
    "Open Bandit Pipeline": (
        Measured("evaluate_1e7", "rows per second evaluated, the same estimates", "{:,.0f}"),
        Measured("fit_against_obp_ipw", "rows per second learned from a log; `IPWLearner`", "{:,.0f}"),
        reward("fit_against_obp_ipw", "reward of what was learned from it"),
        reward("default_loop_20x5_obp", "reward online where rewards are linear; LinUCB, one seed"),
        Said("estimators for lists and for very many actions", "docs/evaluation.md", YES, YES),
        Said("verdicts whose error rate is counted where the truth is known", "docs/guarantees.md", YES, NO),
    ),
    "[Azure Personalizer](docs/from-personalizer.md)": (
        Said("rank and reward, by Azure's client", "tests/serving/test_personalizer_api.py", YES, "until August 2026"),
        Said("new models within seconds of a reward", "tests/serving/test_trainer.py", YES, "within minutes"),
        Said("each decision explained", "tests/cli/test_explain.py", YES, NO),
        Said("run for you", "docs/capacity.md", NO, "**yes**, until August 2026"),
    ),
}  # fmt: skip


def rendered(results: Results) -> str:
    lines = [BEGIN, "| beside | what | o2pl | they |", "|---|---|---|---|"]
    for peer, items in PEERS.items():
        cells = [_cells(item, results) for item in items]
        shown = [each for each in cells if each]
        lines += [f"| {peer if place == 0 else ''} | {' | '.join(each)} |" for place, each in enumerate(shown)]
    return "\n".join([*lines, END])


def _cells(item: Measured | Said, results: Results) -> list[str]:
    """What, with its link; our side, and theirs. None where the row was not measured."""
    if isinstance(item, Said):
        return [f"[{item.what}]({item.link})", item.ours, item.theirs]
    found = results.get(item.row, {})
    if "ratio" not in found:
        return []
    ours, theirs = found[item.ours], found[item.theirs]
    numbers = [item.form.format(ours), item.form.format(theirs)]
    if ours != theirs:
        ahead = int((ours < theirs) != item.low)  # the place of whoever is ahead
        numbers[ahead] = f"**{numbers[ahead]}**"
    group = BENCH[item.row].group
    page = ELSEWHERE.get(group, f"docs/benchmarks.md#{group.lower().replace(' ', '-').replace(',', '')}")
    return [f"[{item.what}]({page})", *numbers]


def write(results: Results) -> None:
    text = README.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    README.write_text(before + rendered(results) + after)
