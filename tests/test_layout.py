"""The tests mirror the source trees: the tests of `src/o2pl/a/b.py` are in `tests/a/test_b.py`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "o2pl", ROOT / "tests"
BESIDE = ROOT / "reproduction"

ELSEWHERE = {  # module: where it is tested, or why it is not
    "data/decisions.py": "in tests/test_decisions.py",
    "data/vw_events.py": "both readers, side by side, in formats/test_vw_text",
    "formats/dsjson_table.py": "both readers, side by side, in formats/test_dsjson",
    "formats/vw_scan.py": "both readers, side by side, in formats/test_vw_text",
    "errors.py": "a name",
    "protocols.py": "signatures",
    "version.py": "a number",
    "kernels/gpu_blocks.py": "plain XLA, in kernels/test_gpu",
    "kernels/gpu_parts.py": "both forms of it, in kernels/test_gpu",
    "kernels/gpu_tiles.py": "the fused tiles, in kernels/test_gpu",
    "kernels/dense.py": "in kernels/test_softmax, test_outcome and test_linear",
    "kernels/fused_values.py": "every registration runs in test_kernel_contracts",
    "engine/acting.py": "members as kernels get them, in kernels/test_deciding and engine/test_decider",
    "engine/decider_files.py": "every kind of file in test_saved_files, others in engine/test_decider",
    "engine/engine_files.py": "through the learners in engine/test_engine, every kind of file in test_saved_files",
    "learners/gaussian.py": "beside O2PL in learners/test_o2pl",
    "learners/improvement_candidates.py": "gains and verdicts, in learners/test_incumbent",
    "learners/policy_kinds.py": "through the learners in test_discrete, test_hashed and engine/test_item_memory",
    "learners/learned.py": "through the learners: logs, snapshots, files in learners/test_base and test_engine",
    "learners/params.py": "through the learners: clone, get_params, set_params in learners/test_o2pl",
    "learners/round_by_round.py": "every form of `update` in engine/test_pending, bad ones in test_base",
    "data/many_decisions.py": "in engine/test_many",
    "engine/lock.py": "threads share a learner in engine/test_engine",
    "engine/spec.py": "a tuple",
    "simulation/rivals/discrete.py": "in simulation/rivals/test_rivals",
    "extras.py": "in test_core",
    "demo/pictures.py": "drawn on the page of demo/test_page",
    "simulation/units.py": "in reproduction/tests/test_registry.py, for every experiment",
    "cli/__main__.py": "every test that starts a process",
    "cli/backup.py": "the life of a log, in cli/test_export",
    "cli/join.py": "after a night of decisions, in cli/test_decide",
    "cli/logs.py": "skipped rows, in cli/test_convert and cli/test_describe",
    "cli/retain.py": "the life of a log, in cli/test_export",
    "serving/training_batches.py": "in serving/test_restored",
    "serving/training.py": "in serving/test_trainer and serving/test_restored",
    "serving/server.py": "the process that `o2pl serve` starts, in cli/test_serve",
}
ACROSS = {  # tests of more than one module
    "cli/test_cli.py": "all commands: the help, and what it imports",
    "cli/test_large_logs.py": "`o2pl fit` and `o2pl evaluate` of logs larger than memory",
    "test_benchmarks.py": "the bench, outside the package",
    "test_benchmark_references.py": "the bench, outside the package",
    "test_peers.py": "the bench, outside the package",
    "test_practice.py": "tasks of the guide's page of practice, as users write them",
    "test_practice_twenty.py": "twenty more of them",
    "test_core.py": "the extras, and the core without them",
    "test_contracts.py": "every policy and every feature map",
    "test_decisions.py": "decisions and their ids: data/decisions.py",
    "test_docs.py": "the documents",
    "test_guarantees.py": "what the whole promises",
    "test_levels.py": "the script of `make test-levels`",
    "test_layout.py": "this",
    "evaluation/test_coverage.py": "confidence of intervals and sequences, in simulations",
    "engine/test_compiled_sets.py": "action sets in the compiled core: engine/compiled.py",
    "kernels/test_deciding.py": "decisions of the compiled core beside the parts",
    "kernels/test_outcome.py": "the outcome likelihood of the compiled core at its edges",
    "kernels/test_softmax.py": "the pessimistic objective of the compiled core at its edges",
    "test_native.py": "the compiled core, which has no Python",
    "test_kernel_contracts.py": "every kernel",
    "test_saved_files.py": "every kind of learner",
    "serving/test_restored.py": "backups that are restored, and policies that are learned again",
    "serving/test_private.py": "files, keys and logs that others may not see",
    "serving/test_retries.py": "decisions that are asked for again, by every route",
    "serving/test_odd_calls.py": "HEAD, impossible numbers, calls at the same time",
    "serving/test_deploy.py": "the compose file in deploy",
    "serving/test_damage.py": "backups that are restored, hostile files, under load",
    "serving/test_faults.py": "processes that are killed, disks that are full, files that go away",
    "test_site.py": "the documents as a site",
    "learners/test_frames.py": "learners on frames and rows with names, end to end",
    "learners/test_neural.py": "learners of neural policies, end to end",
    "learners/test_hashed.py": "learners on dictionaries, end to end",
    "learners/test_words.py": "words in the contexts of default learners, end to end",
    "learners/test_texts.py": "texts and embeddings in the contexts of default learners, end to end",
    "simulation/rivals/test_rivals.py": "every rival",
    "formats/test_vw_files.py": "VW's own test files, where they are",
    "fitting/test_same_policy.py": "a fit in memory, out of core, on Ray and on a GPU",
    "serving/test_documents.py": "the documents' calls and commands, against a running service",
    "simulation/worlds/test_contract.py": "every world",
}


BESIDE_ELSEWHERE = {
    "studies/bakeoff_figures.py": "drawn in test_bakeoff_study",
    "studies/structures_figures.py": "drawn in test_structures_study",
}
TREES = {  # a package's sources and tests, and the exceptions of both
    "o2pl": (SOURCE, TESTS, ELSEWHERE, ACROSS),
    "o2pl_reproduction": (BESIDE / "src" / "o2pl_reproduction", BESIDE / "tests", BESIDE_ELSEWHERE, {}),
}


def modules_of(source: Path) -> set[str]:
    """The modules that hold more than names of others."""
    return {path.relative_to(source).as_posix() for path in source.rglob("*.py") if path.name != "__init__.py"}


@pytest.mark.parametrize("package", TREES)
def test_every_module_has_a_test_of_its_name(package: str) -> None:
    source, tests, elsewhere, _ = TREES[package]
    found = modules_of(source)
    assert {each for each in found if not (tests / each).with_name(f"test_{Path(each).name}").exists()} == set(
        elsewhere
    )


@pytest.mark.parametrize("package", TREES)
def test_every_test_has_the_name_of_a_module(package: str) -> None:
    source, tests, _, across = TREES[package]
    found = modules_of(source)
    names = (path.relative_to(tests) for path in tests.rglob("test_*.py"))
    assert {each.as_posix() for each in names if each.with_name(each.name[5:]).as_posix() not in found} == set(across)


HELD = {"ActionSets", "Contexts", "Frame", "Records", "SparseRows"}


def test_a_contexts_type_is_asked_for_at_the_door_alone() -> None:
    """`data` and `encode` know what contexts are; others ask `Contexts`, `log.form` or the encoder."""
    asked = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                asked |= {path.relative_to(SOURCE).as_posix()} if names & HELD else set()
    assert {module for module in asked if not module.startswith(("data/", "encode/"))} == set()
    assert any(module.startswith("data/") for module in asked)


def test_a_class_name_stands_in_one_module() -> None:
    """In both packages together: a name means one thing."""
    found: dict[str, list[str]] = {}
    for root in (SOURCE, BESIDE / "src" / "o2pl_reproduction"):
        for path in sorted(root.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(path.relative_to(root).as_posix())
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
