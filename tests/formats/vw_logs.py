"""Logs as Vowpal Wabbit reads them, and what VW learns from a file."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
WORDS = ["red", "green", "blue"]


def events(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Decisions among two to five items, with all that VW's dsjson may say of them."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(n):
        items = [
            {"Item": {"colour": WORDS[rng.integers(3)], "price": round(rng.normal(), 3), "size": [1, 2.5]}}
            for _ in range(rng.integers(2, 6))
        ]
        order = rng.permutation(len(items))
        p = rng.dirichlet(np.ones(len(items)))
        event: dict[str, Any] = {
            "_label_cost": -float(items[order[0]]["Item"]["colour"] == WORDS[k % 3]),
            "_label_probability": float(p[0]),
            "_label_Action": int(order[0]) + 1,
            "_labelIndex": int(order[0]),
            "Timestamp": f"2024-01-01T00:00:{k % 60:02d}.0000000Z",
            "Version": "1",
            "EventId": f"e{k}",
            "a": [int(a) + 1 for a in order],
            "c": {"User": {"likes": WORDS[k % 3], "age": k % 50, "new": k % 2 == 0, 'é "x"': 1}, "_multi": items},
            "p": p.tolist(),
            "VWState": {"m": "m/1"},
        }
        if k % 7 == 0:
            event["pdrop"] = 0.25
        if k % 11 == 0:
            event["_skipLearn"] = True
        if k % 13 == 0:
            event["future"] = {"field": [1, "two"]}  # that nobody knows of
        if k % 17 == 0:
            for name in ("_label_cost", "_label_probability", "_label_Action", "_labelIndex"):
                del event[name]
        made.append(event)
    return made


def slot_events(n: int) -> list[dict[str, Any]]:
    """Two slots each, to be filled from four items."""
    rng = np.random.default_rng(1)
    made = []
    for k in range(n):
        first, *left = rng.permutation(4).tolist()
        cost = -float(first % 3 == k % 3)
        made.append(
            {
                "Timestamp": "2024-01-01T00:00:00Z",
                "EventId": f"e{k}",
                "c": {
                    "User": {"likes": WORDS[k % 3]},
                    "_multi": [{"Item": {"colour": WORDS[j % 3], "id": f"i{j}"}} for j in range(4)],
                    "_slots": [{"Slot": {"top": 1}}, {"Slot": {"low": 1}}],
                },
                "_outcomes": [
                    {"_label_cost": cost, "_id": "s0", "_a": [first, *left], "_p": [0.4, 0.2, 0.2, 0.2]},
                    {"_label_cost": 0, "_id": "s1", "_a": left, "_p": [0.5, 0.25, 0.25], "_o": []},
                ],
                "VWState": {"m": "1"},
            }
        )
    return made


def real_events(n: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    return [
        {
            "_label_ca": {"action": float(a), "cost": float(abs(a - 2)), "pdf_value": 0.25},
            "EventId": f"e{k}",
            "c": {"User": {"age": k % 5}},
        }
        for k, a in enumerate(rng.uniform(0, 4, n))
    ]


def write_events(path: Path, made: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in made))
    return path


def learned(path: Path, arguments: str) -> dict[str, str]:
    """VW's weights after one pass over a file, as it writes them."""
    import vowpalwabbit

    model = path.with_name(f"{path.name}.model")
    vowpalwabbit.Workspace(f"{arguments} -b 14 -d {path} --readable_model {model} --quiet").finish()
    weights = [line.partition(":") for line in model.read_text().splitlines()]
    return {name: value for name, _, value in weights if name.isdecimal()}


def learned_apart(path: Path, arguments: str) -> dict[str, str]:
    """The same in a process of its own, which VW ends on some errors."""
    called = f"learned(Path({str(path)!r}), {arguments!r})"
    code = f"from pathlib import Path; from tests.formats.vw_logs import learned; print({called})"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, str] = ast.literal_eval(ran.stdout.splitlines()[-1])
    return found


def close(one: dict[str, str], two: dict[str, str], tolerance: float) -> bool:
    """Whether weights agree but for rounding."""
    return one.keys() == two.keys() and all(
        abs(float(one[k].split()[0]) - float(two[k].split()[0])) <= tolerance for k in one
    )
