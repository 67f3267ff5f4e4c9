"""`python -m reproduction.peers.offline_obp_rows [STUDY ...]`: OBP beside ours on the logs of the offline studies.

Makes the logs of `offline-synthetic`, `offline-multiclass` and `overlap` at full size again, seed by seed, lets OBP
work on them in the peers' environment (`make peers` makes it; `offline_obp.py` is what runs there), values what its
learners choose exactly, and keeps all of it in `offline_obp.json` beside the study. Estimators are held against the
exact value of two policies: the uniform one, and the greedy one that O2PL learns from another log of the same task.
`STUDY:WORLD` makes one world's rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.internals import decode
from benchmarks.peers import interpreter, versions

from o2pl.evaluation.evaluate import evaluate
from o2pl.simulation.experiment import Options
from o2pl_reproduction.claims.study import Study
from o2pl_reproduction.studies import offline
from o2pl_reproduction.studies.offline_multiclass import OFFLINE_MULTICLASS
from o2pl_reproduction.studies.offline_obp import ESTIMATORS, FILE, LABELS, TARGETS
from o2pl_reproduction.studies.offline_synthetic import OFFLINE_SYNTHETIC
from o2pl_reproduction.studies.overlap import OVERLAP

SETTINGS = {
    "offline-synthetic": offline.SYNTHETIC,
    "overlap": offline.SYNTHETIC,
    "offline-multiclass": offline.MULTICLASS,
}
STUDIES = {study.experiment.name: study for study in (OFFLINE_SYNTHETIC, OFFLINE_MULTICLASS, OVERLAP)}
FORESTS = ("offline-synthetic", "offline-multiclass")  # studies in which OBP's forests take part: they take longest
_ANOTHER = 5000  # added to the seed: the log that the policy to be evaluated is learned from


def worlds_of(study: Study) -> dict[str, Any]:
    return {cell.world["name"]: decode(cell.world["world"]) for cell in study.experiment.cells(None)}


def log_of(task: Any, rounds: int, seed: int) -> Any:
    """As `offline.run_unit` draws it."""
    return task.log(rounds, np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[0]))


def rows_of(study: Study, name: str, seeds: int) -> dict[str, Any]:
    """Learner -> its value by seed; target -> library -> estimator -> estimates by seed, and the truth."""
    task, rounds = worlds_of(study)[name], study.experiment.size(Options("full")).rounds
    made, policies = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            logged = log_of(task, rounds, seed)
            policy = offline.METHODS["o2pl"](*SETTINGS[study.experiment.name]["o2pl"])(task.n_actions, 0)
            policy.fit(*log_of(task, rounds, _ANOTHER + seed).interactions)
            greedy = np.eye(task.n_actions)[policy.predict(logged.interactions.contexts)]
            uniform = np.full((len(logged.interactions), task.n_actions), 1 / task.n_actions)
            made.append(logged)
            policies.append({"uniform": uniform, "learned": greedy, "there": policy.predict(logged.contexts)})
            contexts, actions, rewards, propensities = logged.interactions
            columns = {"contexts": contexts, "actions": actions, "rewards": rewards, "propensities": propensities}
            np.savez(
                Path(folder) / f"{seed:04d}.npz",
                **columns,
                n_actions=task.n_actions,
                fresh=logged.contexts,
                target_uniform=uniform,
                target_learned=greedy,
            )
        forests = study.experiment.name in FORESTS
        names = [each for each in LABELS if forests or not each.endswith("forest")]
        command = [interpreter("obp"), "-m", "reproduction.peers.offline_obp", folder, *names]
        subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
        said = [json.loads((Path(folder) / f"{seed:04d}.json").read_text()) for seed in range(seeds)]
    identity = np.eye(task.n_actions)
    values = {
        learner: [round(one.value(identity[each["choices"][learner]]), 6) for one, each in zip(made, said, strict=True)]
        for learner in said[0]["choices"]
    }
    return {"values": values, "estimates": {target: _estimates(target, made, policies, said) for target in TARGETS}}


def _estimates(target: str, made: list[Any], policies: list[Any], said: list[Any]) -> dict[str, Any]:
    truths, ours = [], []
    for logged, policy in zip(made, policies, strict=True):
        k = logged.means.shape[1]
        there = np.full(logged.means.shape, 1 / k) if target == "uniform" else np.eye(k)[policy["there"]]
        truths.append(round(logged.value(there), 6))
        found = evaluate(logged.interactions, policy[target], propensities="logged")
        ours.append({one.name: one.value for one in found.estimates})
    theirs = [each["estimates"][target] for each in said]
    return {
        "truth": truths,
        **{
            library: {name: [round(float(each[name]), 6) for each in each_log] for name in ESTIMATORS}
            for library, each_log in (("o2pl", ours), ("obp", theirs))
        },
    }


def main(names: list[str]) -> None:
    stored: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in names or list(STUDIES):
        study, _, one = name.partition(":")
        chosen = STUDIES[study]
        size = chosen.experiment.size(Options("full"))
        stored |= {"obp": versions()["obp"]}
        kept = stored.setdefault("studies", {}).setdefault(study, {"rounds": size.rounds, "worlds": {}})
        for world in [one] if one else worlds_of(chosen):
            kept["worlds"][world] = rows_of(chosen, world, size.seeds)
            print(f"{study}: {world}", flush=True)
            FILE.write_text(json.dumps(stored, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
