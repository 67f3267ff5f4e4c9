"""`o2pl explain`, as one types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.serving.trained import said as said_of
from tests.serving.trained import train
from typer.testing import CliRunner

import o2pl
from o2pl.cli import app
from o2pl.serving.store import Store


def run(*arguments: Any, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["explain", *(str(argument) for argument in arguments)])
    assert done.exit_code == status, (done.output, done.exception)
    return done.stderr if status else done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved: a learner on a frame and its log, one on numbers, one on users and items, a published policy."""
    out = tmp_path_factory.mktemp("explain")
    generator = np.random.default_rng(0)
    visits = pd.DataFrame(
        {
            "age": generator.integers(18, 80, 200),
            "city": generator.choice(["Rome", "Oslo"], 200),
            "new": generator.choice([True, False], 200),
            "at": pd.date_range("2026-01-01", periods=200, freq="h"),
        }
    )
    actions = generator.choice(["news", "sport"], 200)
    clicks = ((actions == "sport") == (visits.city == "Rome")).astype(float)
    learner = o2pl.Bandit(random_state=0).fit(visits, actions, clicks, np.full(200, 0.5))
    learner.save(out / "named.o2pl")
    learner.snapshot().save(out / "published.o2pl")
    visits.assign(action=actions, reward=clicks, propensity=0.5).to_csv(out / "log.csv", index=False)
    numbers = o2pl.O2PL(3, policy="linear", random_state=0)
    numbers.run((generator.normal(size=(50, 2)), generator.random((50, 3))))
    numbers.save(out / "numbers.o2pl")
    items = o2pl.Bandit(random_state=0)
    for k in range(30):
        items.update(items.act(generator.normal(size=2), generator.normal(size=(3, 2))), float(k % 2))
    items.save(out / "items.o2pl")
    words = o2pl.Bandit(2, policy="hashed", random_state=0)
    for k in range(40):
        words.update(words.act({"id": f"u{k % 3}"}), float(k % 2))
    words.save(out / "words.o2pl")
    return out


def test_a_context_in_every_form_says_the_same(folder: Path) -> None:
    context = {"age": 31, "city": "Rome", "new": True, "at": None}
    (folder / "visit.json").write_text(json.dumps(context))
    said = run(folder / "named.o2pl", "--context", json.dumps(context))
    assert said.rstrip("\n") == str(o2pl.load(folder / "named.o2pl").explain(context))
    assert run(folder / "named.o2pl", "--context", folder / "visit.json") == said
    assert run(folder / "named.o2pl", "--context", "31,Rome,true,") == said
    assert said.startswith("sport (probability")
    dated = run(folder / "named.o2pl", "--context", "31,Rome,true,2026-01-03 05:00")
    assert "2026-01-03 05:00" in dated
    by_values, by_json = (run(folder / "numbers.o2pl", "--context", row) for row in ("0.5, -1", "[0.5, -1]"))
    assert by_values == by_json


def test_a_row_of_a_log(folder: Path) -> None:
    from_log = run(folder / "named.o2pl", "--row", 3, "--log", folder / "log.csv")
    own = run(folder / "named.o2pl", "--row", 3)
    assert own == from_log
    log = o2pl.load(folder / "named.o2pl").log_
    assert own.startswith(f"row 3: action {log.named_actions[3]} was played, reward {log.rewards[3]:g}\n")
    assert own.partition("\n")[2].rstrip("\n") == str(o2pl.load(folder / "named.o2pl").explain(log.contexts[3]))
    assert "no log available" in run(folder / "published.o2pl", "--row", 3, "--log", folder / "log.csv")
    assert "feature " in run(folder / "words.o2pl", "--row", 0)  # its words are not in the file
    assert "id " in run(folder / "words.o2pl", "--context", '{"id": "u1"}')
    assert "user x0" in run(folder / "items.o2pl", "--row", 0)


def test_items_actions_and_the_picture(folder: Path) -> None:
    offer = {"user": [0.1, 0.2], "items": [[1, 2], [3, 4], [5, 6]], "ids": ["a", "b", "c"]}
    said = run(folder / "items.o2pl", "--context", json.dumps(offer), "--action", "b", "--against", "c")
    assert said.startswith("b (probability")
    assert "against c" in said
    said = run(folder / "numbers.o2pl", "--context", "1,1", "--action", 2, "--against", 0, "--figure", folder / "why")
    assert said.startswith("action 2 (")
    assert said.endswith(f"figure: {folder / 'why.png'}\n")
    assert (folder / "why.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("named", [], "expected either --context or --row, found both or neither"),
        ("named", ["--context", "{", "--row", "1"], "found both or neither"),
        ("named", ["--context", "{}", "--log", "log.csv"], "without --row"),
        ("named", ["--context", '{"age": }'], "context: found invalid JSON"),
        ("named", ["--context", "nowhere.json"], "found no file 'nowhere.json'"),
        ("named", ["--context", "1,Rome"], "found 2 values, expected 4: age, city, new, at"),
        ("named", ["--context", "old,Rome,true,"], "context, age: found 'old', expected a number"),
        ("named", ["--context", "31,Rome,true,late"], "context, at: found 'late', expected a date or time"),
        ("named", ["--row", "200"], "row: found 200, expected a row number from 0 to 199"),
        ("named", ["--context", "31,Rome,true,", "--action", "sports"], "action: found 'sports', expected 'sport'"),
        ("numbers", ["--context", "a,b"], "context: found 'a,b', expected JSON"),
        ("numbers", ["--context", "[1, 2, 3]"], "expected"),
        ("published", ["--row", "1"], "published policy, which has no log"),
        ("nothing", ["--row", "1"], "found no file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder: Path, model: str, arguments: list[str], message: str) -> None:
    said = run(folder / f"{model}.o2pl", *arguments, status=2)
    assert message in said
    assert len(said.splitlines()) == 1


def test_prices_are_refused(tmp_path: Path) -> None:
    prices = o2pl.GaussianO2PL(random_state=0)
    prices.update([1.0], 0.5, 1.0, 0.3)
    prices.save(tmp_path / "prices.o2pl")
    assert "real-valued actions" in run(tmp_path / "prices.o2pl", "--context", "1", status=2)


def test_an_event_is_explained_and_a_model_file_too(store: Store, tmp_path: Path) -> None:
    trained = train(store)
    told = said_of(trained, "explain", "b2-7")
    assert "event b2-7: a" in told
    assert "version 2" in told
    assert "identical, bit for bit" in told
    assert "shared.reader.likes" in told
    assert "no model yet: uniform" in said_of(trained, "explain", "b0-3")
    assert "found no event 'nobody'" in said_of(trained, "explain", "nobody", fails=True)
    file = tmp_path / "policy.o2pl"
    said_of(trained, "models", "export", "2", str(file))
    context = '{"reader": {"likes": "arts"}, "_multi": [{"id": "a0", "topic": "news"}, {"id": "a2", "topic": "arts"}]}'
    done: Any = CliRunner().invoke(app, ["explain", str(file), "--context", context])
    assert done.exit_code == 0, done.output
    assert "shared.reader.likes" in done.output
    assert "found with --context" in said_of(trained, "explain", str(file), "--context", context, fails=True)
