"""The bench at tiny sizes and without a clock: how rows are measured, and that the page says what was measured."""

from __future__ import annotations

import ast
import io
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks import __main__ as command
from benchmarks import bakeoff, capacity_page, default, page, readme_table, rounds, scale_page, vw
from benchmarks.bars import met, misses
from benchmarks.bounds import bound
from benchmarks.data import World, logistic_bandit
from benchmarks.measure import Played, Skipped, of_pairs, played
from benchmarks.startup import README, first_example, first_use
from benchmarks.table import BENCH, DEFAULT, ELSEWHERE, GROUPS
from rich.console import Console

from o2pl import O2PL
from o2pl.extras import missing_extra

# -- how a row is measured


def test_ratios_are_of_pairs() -> None:
    row = of_pairs([(4.0, 2.0), (9.0, 3.0), (1.0, 1.0)], "x")
    assert row == (4.0, 2.0, 2.0, 1.0, 3.0, "x", "", None, "")


def test_both_sides_play_the_same_worlds_by_turns() -> None:
    order: list[tuple[str, int, int]] = []

    def side(name: str, seconds: float) -> Any:
        def play(world: int, seed: int) -> Played:
            order.append((name, world, seed))
            return Played(world / 10 + (name == "peer"), seconds)

        return play

    row = played(lambda seed: 7 + seed, side("ours", 0.5), side("peer", 2.0), rounds=10, repeats=3)
    assert order[2:] == [
        ("ours", 7, 0), ("peer", 7, 0), ("peer", 8, 1), ("ours", 8, 1), ("ours", 9, 2), ("peer", 9, 2),
    ]  # fmt: skip
    assert (row.ours, row.peer, row.ratio) == (20, 5, 4)
    assert row.rewards == pytest.approx((0.8, 1.8))


def test_a_side_without_a_clock_of_its_own_is_timed_by_ours() -> None:
    ticks = iter([1.0, 3.0, 4.0, 5.0])
    row = played(lambda _: None, lambda *_: 0.25, lambda *_: 0.5, rounds=10, repeats=1, clock=lambda: next(ticks))
    assert (row.ours, row.peer, row.rewards) == (5, 10, (0.25, 0.5))


def test_the_time_of_a_loop_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0  # nanoseconds, on a clock that only the learner moves

    class Slow:
        def act(self, context: float) -> tuple[int, float]:
            nonlocal now
            now += 2_000_000
            return 0, 1.0

        def update(self, context: float, *_: Any) -> None:
            nonlocal now
            now += 20_100_000 if context == 3 else 100_000

    monkeypatch.setattr(rounds, "time", SimpleNamespace(perf_counter_ns=lambda: now))
    said = rounds.where(Slow(), range(10), lambda t, action: 1.0)
    act, appending, learning = (float(part.split()[-1]) for part in said.split(" µs")[1:4])
    assert (act, appending, learning) == (2000, 100, 2000)


# -- bars


@pytest.mark.parametrize(
    ("bar", "found", "missed"),
    [
        ("≥ 10", {"ratio": 10.0}, []),
        ("≥ 10", {"ratio": 8.0}, ["by a factor of 1.25"]),
        ("≤ .5", {"ratio": 0.5}, []),
        ("≤ .5", {"ratio": 0.6}, ["by a factor of 1.20"]),
        ("gap ≤ .005", {"ratio": 0.9, "o2pl": 0.796, "peer": 0.8}, []),
        ("gap ≤ .005", {"ratio": 0.9, "o2pl": 0.79, "peer": 0.8}, ["by 0.0050"]),
        ("value ≤ .5", {"ratio": 0.1, "o2pl": 0.6, "peer": 6.0}, ["by a factor of 1.20"]),
        ("value ≤ .5", {"ratio": 9.0, "o2pl": 0.45, "peer": 0.05}, []),
        ("≥ 4, more reward", {"ratio": 5.0, "our_reward": 0.8, "peer_reward": 0.7}, []),
        ("≥ 4, more reward", {"ratio": 5.0, "our_reward": 0.7, "peer_reward": 0.7}, ["by 0.0000 in mean reward"]),
        (
            "≥ 4, more reward",
            {"ratio": 2.0, "our_reward": 0.7, "peer_reward": 0.75},
            ["by a factor of 2.00", "by 0.0500 in mean reward"],
        ),
        ("", {"ratio": 1.0}, None),
        ("≥ 10", {"skipped": "why"}, None),
    ],
)
def test_bars(bar: str, found: dict[str, float], missed: list[str] | None) -> None:
    assert misses(bar, found) == missed
    assert met(bar, found) is (None if missed is None else not missed)


def test_every_bar_can_be_read() -> None:
    stored = {"o2pl": 1.0, "peer": 1.0, "ratio": 1.0, "our_reward": 1.0, "peer_reward": 1.0}
    assert all(met(bench.bar, stored) is not None for bench in BENCH.values() if bench.bar)


# -- the rows


@pytest.mark.parametrize("name", BENCH)
def test_every_row_works_at_a_tiny_size(name: str) -> None:
    found = command.measured(BENCH[name], quick=True)
    if "skipped" in found:
        pytest.skip(found["skipped"])
    assert all(math.isfinite(found[key]) for key in ("o2pl", "peer", "ratio", "low", "high"))
    assert found["low"] <= found["ratio"] <= found["high"]
    decides = name.split("_")[0] in ("default", "loop", "run", "bakeoff", "act", "seeds", "learn", "fit")
    assert ("our_reward" in found) == (decides or name.startswith("exact_reward"))
    assert all(math.isfinite(found[key]) for key in ("our_reward", "peer_reward") if key in found)


def test_the_default_learner_leads_and_is_one_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(BENCH)[:3] == ["default_loop_4x3", "default_loop_20x5", "default_loop_64x10"]
    made: list[int] = []

    class Other(O2PL):
        def __init__(self, n_actions: int, random_state: int) -> None:
            made.append(n_actions)
            super().__init__(n_actions, policy="linear", schedule="replay", random_state=random_state)

    monkeypatch.setattr(default, "DEFAULT", Other)
    if not missing_extra("vw"):
        for name in ("default_loop_4x3", "default_act"):
            command.measured(BENCH[name], quick=True)
            assert set(made) == {3 if name == "default_loop_4x3" else 5}
            made.clear()
    contexts, table = logistic_bandit(60, 4, 7)
    for side in ("our-run", "our-loop"):
        assert 0 < bakeoff.SIDES[side](World(contexts, table.tolist(), table), 0, "")() < 1
    assert made == [7, 7]


def test_a_folder_without_sets_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing_extra("vw"):
        pytest.skip("found no package vowpalwabbit")
    monkeypatch.setenv("O2PL_DATA", str(tmp_path))
    with pytest.raises(Skipped, match="found no data sets in"):
        bakeoff.cpu("drivers", folder=True, rounds=10, seeds=1)


def test_both_drivers_and_both_loops_learn_the_same_set(tmp_path: Path) -> None:
    if missing_extra("vw"):
        pytest.skip("found no package vowpalwabbit")
    *_, digits = bakeoff.sampled(None, seed=0, rounds=1500)
    earned = {side: made(digits, 0, str(tmp_path))() for side, made in bakeoff.SIDES.items()}
    assert earned["our-run"] == earned["our-loop"] > 0.7
    assert earned["vw-driver"] > 0.6  # 0.3 where features collide
    assert earned["vw-loop"] > 0.6


def test_the_peers_exploration_is_what_the_row_says() -> None:
    if missing_extra("vw"):
        pytest.skip("found no package vowpalwabbit")
    contexts, table = logistic_bandit(300, 4, 3)
    for options, least in ((vw.GREEDY, 0.0), (vw.AS_IT_COMES, 0.05 / 3)):
        loop = vw.Loop(3, options)
        loop.play(contexts, table.tolist())
        assert min(min(loop.decide(context)) for context in contexts[:50]) == pytest.approx(least)


def test_what_moves_is_imported_in_one_place() -> None:
    stays = {"protocols", "data", "extras", "drawing", "evaluation", "simulation", "cli"}
    stays |= {"serving"}  # what is measured is the service, from outside and from within
    here = {"internals.py", "gpu.py"}  # the rows of a GPU also run where the rest of the package cannot be imported
    for path in sorted(Path(page.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("o2pl."):
                assert path.name in here or node.module.split(".")[1] in stays, f"{path.name}: {node.module}"


# -- start-up


def test_first_use_is_timed_in_a_python_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    work = f"""
import os, time
with open({str(log)!r}, "a") as file:
    print(os.getpid(), file=file)
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
"""
    row = first_use(work, repeats=2)
    assert len({*log.read_text().split(), str(os.getpid())}) == 4  # once before it is timed
    assert row.ours > 0.4  # of .5, in ticks of the clock


def test_the_first_example_is_read_from_the_readme() -> None:
    example = first_example(README.read_text())
    assert "import o2pl" in example
    assert ".act(" in example
    assert ".update(" in example
    assert "```" not in example
    compile(example, "README.md", "exec")
    with pytest.raises(ValueError, match="found no block of Python"):
        first_example("# A page\n")


# -- the command


def test_rows_are_chosen_by_names_and_patterns() -> None:
    assert command.chosen(None) == list(BENCH)
    assert command.chosen("default_act, default_loop_20x5") == ["default_loop_20x5", "default_act"]
    assert command.chosen("machine_*") == ["machine_sgemm", "machine_copy"]
    with pytest.raises(SystemExit, match="found no_such_row, expected names or patterns"):
        command.chosen("default_act,no_such_row")


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(scale_page, "PAGE", tmp_path / "scale.md")
    monkeypatch.setattr(scale_page, "PICTURE", tmp_path / "scale.png")
    (tmp_path / "scale.md").write_text(f"before\n{scale_page.BEGIN}\nold\n{scale_page.END}\nafter\n")
    monkeypatch.setattr(capacity_page, "PAGE", tmp_path / "capacity.md")
    monkeypatch.setattr(readme_table, "README", tmp_path / "README.md")
    (tmp_path / "README.md").write_text(f"before\n{readme_table.BEGIN}\nold\n{readme_table.END}\nafter\n")


@pytest.mark.usefixtures("_elsewhere")
def test_a_quick_run_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--quick", "--rows", "machine_copy"])
    assert "machine_copy" in capsys.readouterr().out
    assert not page.RESULTS.exists()
    assert not page.PAGE.exists()


@pytest.mark.usefixtures("_elsewhere")
def test_some_rows_are_merged_into_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"o2pl": 1.0, "peer": 2.0, "ratio": 0.5, "low": 0.5, "high": 0.5, "unit": "u", "date": "2000-01-01"}
    page.store({"machine_sgemm": old, "a_row_that_is_gone": old})
    monkeypatch.setitem(BENCH, "machine_copy", BENCH["machine_copy"]._replace(measure=lambda: of_pairs([(3, 1)], "v")))
    command.main(["--rows", "machine_copy"])
    found = page.stored()
    assert list(found) == ["about", "machine_sgemm", "machine_copy"]
    assert found["machine_sgemm"] == old
    assert (found["machine_copy"]["ratio"], found["machine_copy"]["unit"]) == (3.0, "v")
    assert page.PAGE.read_text() == page.rendered(found)
    assert scale_page.PAGE.read_text() == f"before\n{scale_page.measured(found)}\nafter\n"
    assert scale_page.PICTURE.exists()
    assert readme_table.README.read_text() == f"before\n{readme_table.rendered(found)}\nafter\n"


def test_the_help_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    said = capsys.readouterr().out
    assert all(word in said for word in ("--rows default_loop_20x5,default_act", "--quick", "--list", "O2PL_DATA"))
    command.main(["--list"])
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(BENCH)


# -- the page


def _results() -> dict[str, Any]:
    """Every row, at numbers that miss all bars."""

    def row(bar: str) -> dict[str, Any]:
        ratio, peer = (0.01, 400.0) if "≥" in bar else (50.0, 400.0)
        ours = 1.0 if "gap" in bar else ratio * peer
        numbers = {"o2pl": ours, "peer": peer, "ratio": ratio, "low": ratio, "high": ratio}
        return {**numbers, "our_reward": 0.7125, "peer_reward": 0.75, "unit": "u", "bar": bar}

    found = {name: row(bench.bar) for name, bench in BENCH.items()}
    return {"about": page.about(), **found, "default_loop_20x5_river": {"skipped": "not there", "bar": ""}}


@pytest.mark.usefixtures("_elsewhere")
def test_what_a_card_once_did_stays_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    once = {"o2pl": 0.5, "peer": 1.0, "ratio": 0.5, "low": 0.4, "high": 0.6, "unit": "ms", "date": "2026-01-01"}
    page.store({"gpu_1e7x64x10": {**once, "card": "a card", "note": "Exact."}})

    def without(**_: Any) -> Any:
        raise Skipped("there is no GPU")

    bench = BENCH["gpu_1e7x64x10"]._replace(measure=without)
    monkeypatch.setitem(BENCH, "gpu_1e7x64x10", bench)
    command.run(["gpu_1e7x64x10"], False, Console(file=io.StringIO()))
    assert page.stored()["gpu_1e7x64x10"]["card"] == "a card"
    written = scale_page.PAGE.read_text()
    assert "on one a card, 2026-01-01 | 0.50 ms | 1.00 ms | 0.5 (0.4–0.6) |" in written
    assert "Where no GPU is at hand, the page keeps what was recorded last." in written


def test_the_page_shows_every_row_and_names_what_is_missed_and_skipped() -> None:
    text = page.rendered(_results())
    _, missed = text.split("## Bars that are missed")
    shown = {name: bench for name, bench in BENCH.items() if bench.group not in ELSEWHERE}
    assert len(shown) <= 41
    for name, bench in shown.items():
        assert f"`{name}`" in text
        assert (f"- `{name}`: " in missed) == bool(bench.bar or name == "default_loop_20x5_river")
    assert "not there" in missed
    assert "busy" not in text
    places = [text.index(f"## {group}\n") for group in GROUPS if group not in ELSEWHERE]
    assert places == sorted(places)


def test_a_row_of_the_page_has_the_rewards_and_by_how_much_it_misses() -> None:
    results = _results()
    row = next(line for line in page.rendered(results).splitlines() if line.startswith("| `default_loop_20x5` |"))
    assert row.endswith("| **missed** by a factor of 1200.00 and by 0.0375 in mean reward | 0.7125 / 0.7500 |")
    assert f"## {DEFAULT}\n\n| row | what | ours | peer | ratio (spread) | bar | met? | mean reward, ours / peer |" in (
        page.rendered(results)
    )
    results["default_loop_20x5"] |= {"ratio": 17.0, "our_reward": 0.8, "load": 3.0}
    text = page.rendered(results)
    row = next(line for line in text.splitlines() if line.startswith("| `default_loop_20x5` |"))
    assert row.endswith("| met | 0.8000 / 0.7500 |")
    assert "1 rows were measured on a busy machine" in text
    assert "## Measured on a busy machine\n\n- `default_loop_20x5`: measure again." in text


def test_the_roofline_of_a_batch() -> None:
    results = _results()
    results["machine_copy"]["o2pl"], results["machine_sgemm"]["o2pl"] = 9.2, 100.0
    # 1e6 rows of 92 bytes at 9.2 GB/s; 4e8 operations at 100 GFLOP/s
    assert "takes 10.0 ms" in bound("batch_1e6x20x5", results)
    assert "rate 4.0 ms" in bound("batch_1e6x20x5", results)


def test_the_page_is_that_of_the_results() -> None:
    root = Path(__file__).parents[1]
    if not (root / "docs" / "benchmarks.md").exists():
        pytest.skip("no page yet")
    assert page.PAGE.read_text() == page.rendered(page.stored())
    assert scale_page.measured(page.stored()) in scale_page.PAGE.read_text()
    assert capacity_page.PAGE.read_text() == capacity_page.rendered(page.stored())
    assert readme_table.rendered(page.stored()) in readme_table.README.read_text()


def test_in_readme_whoever_is_ahead_is_bold() -> None:
    def lines(**numbers: float) -> list[str]:
        row = {"o2pl": 1.0, "peer": 1.0, "ratio": 1.0, "our_reward": 0.5, "peer_reward": 0.5} | numbers
        names = ("bakeoff_cpu_loop", "default_loop_20x5", "default_act")
        return [
            line for line in readme_table.rendered(dict.fromkeys(names, row)).splitlines() if "#the-default" in line
        ]

    reward, decision, loop = lines(o2pl=3000.0, peer=2000.0, our_reward=0.6)
    assert reward.startswith("| [Vowpal Wabbit](docs/from-vw.md) | [mean reward")
    assert reward.endswith("(docs/benchmarks.md#the-default-learner) | **0.600** | 0.500 |")
    assert decision.endswith("| 3000.0 | **2000.0** |")  # times are better low
    assert loop.endswith("| **3,000** | 2,000 |")
    reward, decision, loop = lines(o2pl=2.0, peer=3.0, our_reward=0.4)
    assert reward.endswith("| 0.400 | **0.500** |")
    assert decision.endswith("| **2.0** | 3.0 |")
    assert loop.endswith("| 2 | **3** |")
    named = {item.row for items in readme_table.PEERS.values() for item in items if hasattr(item, "row")}
    assert named <= set(BENCH)


def test_the_page_of_capacity_says_what_follows_from_the_rows() -> None:
    """10,000 calls a second at 100 µs of CPU each take one core, or 1.67 that are 60% busy."""
    rows = {
        "capacity_calls_1": 1000.0, "capacity_calls_2": 1500.0, "capacity_cpu_rank": 100.0,
        "capacity_cpu_reward": 100.0, "capacity_bytes_postgresql": 2000.0,
        "capacity_bytes_sqlite": 1500.0, "capacity_training": 50.0,
    }  # fmt: skip
    about = {"cpu": "a CPU", "cores": 2}
    full = {
        name: {
            "o2pl": value,
            "peer": value / 2,
            "ratio": 2.0,
            "low": 2.0,
            "high": 2.0,
            "unit": "u",
            "date": "2026-01-01",
        }
        for name, value in rows.items()
    }
    text = capacity_page.rendered({"about": about, **full})
    assert "| 2 | 1,500 | 2 (2–2) |" in text
    assert "**Servers**: 1.7 cores" in text
    assert "0.9 TB a day" in text  # 5,000 events of 2,000 bytes, 86,400 times
    assert "0.2 CPU seconds for each second" in text  # 5,000 events at 50 s for 1e6
    assert "2.0 TB a month" in text
    assert "Not measured yet" in capacity_page.rendered({})
