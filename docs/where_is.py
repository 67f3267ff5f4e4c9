"""`python docs/where_is.py`: the table "Where is …?" of docs/architecture.md, found in the sources by name.

A row is a question and the name that answers it, with the folder where several have one of that name. The file is
looked up: a name that is gone, or that two files define, stops the script.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE, PACKAGE = ROOT / "docs" / "architecture.md", ROOT / "src" / "o2pl"
BEGIN, END = "<!-- where: written by docs/where_is.py -->", "<!-- end of where -->"

ROWS = [  # where is …?  (name, or folder/name)
    ("what users hold: `act`, `update`, `fit`, `predict`, `run`", "learners/Bandit"),
    ("the paper's algorithm, with its settings", "learners/O2PL"),
    ("a decision: action and propensity", "Decision"),
    ("a log: rows with rewards", "Interactions"),
    ("a log that grows in a learner", "data/Log"),
    ("frames, dictionaries, texts as rows", "Encoder"),
    ("names and kinds of columns", "Schema"),
    ("words as hashed features", "features/Hashed"),
    ("scores and probabilities of a linear policy", "Softmax"),
    ("exploration", "UniformExploration"),
    ("the objective: clipped weights and penalty", "Pessimistic"),
    ("the penalty Φ", "phi"),
    ("the minimiser", "LBFGS"),
    ("when a learner re-learns", "Geometric"),
    ("what puts features, policy, objective, oracle together", "Member"),
    ("appending, re-learning, weighting members", "engine/Engine"),
    ("what decides, is published and shared by threads", "Decider"),
    ("detection of change", "Change"),
    ("why an action was chosen", "Explanation"),
    ("the value of a policy on a log", "evaluation/evaluate"),
    ("is it better? the verdict", "evaluation/judge"),
    ("anytime-valid intervals", "confidence_sequence"),
    ("safe improvement of an incumbent", "SafeImprovement"),
    ("candidates on held-out rows, and the best of them", "fitting/fit"),
    ("a fit of a log larger than memory", "fit_out_of_core"),
    ("logs from files", "read_log"),
    ("the files of learners", "encode_for_storage"),
    ("the service's routes", "make_app"),
    ("the training process", "Trainer"),
    ("learners compared in worlds", "simulation/compare"),
]


@cache
def defined() -> dict[str, list[Path]]:
    """Every class and function at the top of a file of the package, with its files."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = ast.parse(path.read_text()).body
        for name in {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}:
            found.setdefault(name, []).append(path.relative_to(PACKAGE))
    return found


def file_of(answer: str) -> Path:
    """The one file that defines `name`, or `folder/name`."""
    folder, _, name = answer.rpartition("/")
    files = [path for path in defined().get(name, []) if not folder or path.with_suffix("").parts[0] == folder]
    if len(files) != 1:
        said = ", ".join(map(str, files)) or "no file"
        raise SystemExit(f"docs/where_is.py, ROWS: found {said} with {answer!r}, expected one")
    return files[0]


def table() -> str:
    lines = ["| where is …? | its name | the file |", "|---|---|---|"]
    lines += [f"| {asked} | `{answer.rpartition('/')[2]}` | `{file_of(answer).as_posix()}` |" for asked, answer in ROWS]
    return "\n".join([BEGIN, "", *lines, "", END])


def written() -> str:
    """The page as it should be."""
    text = PAGE.read_text()
    return text[: text.index(BEGIN)] + table() + text[text.index(END) + len(END) :]


if __name__ == "__main__":
    PAGE.write_text(written())
