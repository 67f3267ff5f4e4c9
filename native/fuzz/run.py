"""Builds the fuzzers of the parsers, with sanitizers, and runs them side by side.

    python native/fuzz/run.py --seconds 240 [--seed 0] [--corpus FOLDER]

Seeds are the events of the tests, and the files of `--corpus` (or of the folder that O2PL_FUZZ_CORPUS names): logs of
Vowpal Wabbit, for example. A fuzzer that finds something leaves the input under out/fuzz.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "fuzz"
sys.path[:0] = [str(ROOT), str(ROOT / "native")]

from wheel import check_compiler, tools  # noqa: E402  # found on the path above

ODD = (
    r'{"_label_cost":1e5,"_label_probability":0.5,"_labelIndex":0,"a":[1],"p":[1],"c":{"U":{"x":[1,"b\u00e9",'
    r'{"z":true}],"y\n":null},"_multi":[{"I":{"\ud83d\ude00":-0.00012345678901234567890}},{"_tag":1}],"late":1e-30}}'
)


def build() -> list[Path]:
    """Compile what has changed. Returns the fuzzers."""
    check_compiler()
    path = os.environ.get("PATH", "")
    if not (shutil.which("cmake") and shutil.which("ninja")):
        path = os.pathsep.join([str(Path(tools()).parent), path])
    environment = {**os.environ, "PATH": path}
    if "CXX" not in os.environ and shutil.which("clang++"):
        environment["CXX"] = "clang++"
    configure = ["cmake", "-G", "Ninja", "-S", str(ROOT / "native"), "-B", str(OUT), "-DO2PL_FUZZ=ON"]
    for command in (configure, ["cmake", "--build", str(OUT), "--target", "fuzzers"]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"fuzzing: the build failed\n{done.stdout}{done.stderr}")
    return sorted(each for each in (OUT / "fuzz").glob("fuzz_*") if os.access(each, os.X_OK) and each.is_file())


def seeds(corpus: Path | None) -> list[Path]:
    """Write the events of the tests as files. Returns them and those of the corpus."""
    from tests.formats.vw_logs import events, real_events, slot_events

    folder = OUT / "seeds"
    folder.mkdir(parents=True, exist_ok=True)
    made = {"decisions": events(40), "slots": slot_events(10), "real": real_events(10)}
    texts = {f"{name}.dsjson": "\n".join(json.dumps(event) for event in each) for name, each in made.items()}
    contexts = [event["c"] for event in (*made["decisions"], *made["slots"])]
    texts["contexts.json"] = "\n".join(json.dumps(each, ensure_ascii=k % 2 == 0) for k, each in enumerate(contexts))
    texts["odd.dsjson"] = ODD
    texts["odd.json"] = json.dumps(json.loads(ODD)["c"])
    for k in range(12):
        texts[f"event{k}.vw"] = (
            f"shared 'e{k} |User age:{k} city=Rome\n0:-{k}.5:0.25 |Item price:{k}e-1 x\n|Item _y z:-0\n\n"
        )
    for name, text in texts.items():
        (folder / name).write_text(text)
    files = [folder / name for name in sorted(texts)]
    return files + (sorted(each for each in corpus.rglob("*") if each.is_file()) if corpus else [])


def fuzz(fuzzer: Path, files: list[Path], seconds: float, seed: int) -> tuple[str, bool]:
    """Run one fuzzer. Returns what it says, and whether it found nothing."""
    work = OUT / "work" / fuzzer.stem
    work.mkdir(parents=True, exist_ok=True)
    if subprocess.run([fuzzer], capture_output=True, cwd=work, timeout=60).returncode == 2:  # ours: it wants arguments
        command = [fuzzer, str(seconds), str(seed), *files]
    else:
        (work / "corpus").mkdir(exist_ok=True)
        for k, file in enumerate(files):
            shutil.copy(file, work / "corpus" / str(k))
        command = [
            fuzzer,
            f"-max_total_time={seconds:.0f}",
            f"-seed={seed + 1}",
            "-print_final_stats=1",
            work / "corpus",
        ]
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, cwd=work, errors="replace")
    said = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode:
        return "\n".join([f"{fuzzer.stem}: failed; see {work}", *said[-40:]]), False
    last = next((line for line in reversed(said) if "inputs" in line or "number_of_executed_units" in line), "")
    return f"{fuzzer.stem}: {last}", True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=240, help="time for all fuzzers, which share the processors")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, default=os.environ.get("O2PL_FUZZ_CORPUS"))
    given = parser.parse_args()
    fuzzers, files = build(), seeds(given.corpus)
    at_once = min(os.cpu_count() or 1, len(fuzzers))
    each = given.seconds * at_once / len(fuzzers)
    with ThreadPoolExecutor(at_once) as pool:
        found = list(pool.map(lambda one: fuzz(one, files, each, given.seed), fuzzers))
    print("\n".join(said for said, _ in found))
    sys.exit(not all(fine for _, fine in found))


if __name__ == "__main__":
    main()
