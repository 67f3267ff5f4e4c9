"""Models from outside: a file is data. It is checked, then tried in a process of its own, before it is stored.

A file that a client sends may hold anything. What ends the process, or takes all its memory or time, ends only the
process that tries it: `python -m o2pl.serving.model_checks`, which reads a line of settings and the file, and decides a
few times. A learner learns a few times too. It writes what is to be stored.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from typing import Any

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.learners import load
from o2pl.serving.applications import Application
from o2pl.serving.deciding import Acting
from o2pl.serving.imported_learners import Prepared, of_file
from o2pl.serving.models import decider_of
from o2pl.serving.settings import Kind, from_json, to_json
from o2pl.storage import MOST_OUTSIDE

_SECONDS = 60.0  # for a trial: it takes about one
_MEMORY = 4 * MOST_OUTSIDE  # of a trial, beyond what the interpreter itself maps
_REFUSED = 3  # exit status of a trial that says why


def check_outside(application: Application, body: bytes) -> Prepared:
    """Return what to store of a file. A model that is not safe to serve is refused, with the reason."""
    settings = json.dumps([application.kind, to_json(application.settings)]).encode()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "o2pl.serving.model_checks"], input=settings + b"\n" + body, capture_output=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"model: a trial took more than {_SECONDS:g} s, expected a policy that decides") from None
    if done.returncode == _REFUSED:
        raise InvalidInput(done.stdout.decode(errors="replace"))
    if done.returncode:
        raise InvalidInput(
            f"model: found a file that ends the process that tries it (status {done.returncode}), expected a policy"
        )
    sizes, _, bodies = done.stdout.partition(b"\n")
    policy, rows = (int(size) for size in sizes.split())
    return Prepared(bodies[:policy], bodies[policy:] or None, rows)


def tried(kind: Kind, settings: Any, body: bytes) -> Prepared:
    """Load a model and decide with it; raises if it cannot, or decides with something that is no probability."""
    application = Application(0, "", kind, settings, None, 0.0)
    made = of_file(application, load(io.BytesIO(body), name="model", outside=True), body)
    acting = Acting(kind, settings, 1, decider_of(made.policy))
    acting.try_out()
    for k in range(8):
        drawn = _decision(acting, k)
        pi = drawn.probabilities
        fine = np.isfinite(drawn.propensity) and drawn.propensity > 0
        if pi is not None:
            fine = fine and bool((pi >= 0).all()) and abs(float(pi.sum()) - 1) < 1e-6
        if not fine:
            raise InvalidInput(
                f"model: decides with probabilities {pi} and propensity {drawn.propensity}, expected some"
            )
    return made


def _decision(acting: Acting, k: int) -> Any:
    uniform = (k + 0.5) / 8
    if acting.kind is Kind.RANKED:
        text = json.dumps({"user": {"id": f"u{k}", "age": k}, "_multi": [{"id": "a", "b": k}, {"id": "b"}, {"c": [1]}]})
        return acting.ranked(text.encode(), 3, uniform)
    if acting.kind is Kind.FIXED:
        return acting.fixed(json.dumps({"a": f"b{k}", "x": k}).encode(), uniform)
    width = acting.decider.encoder.width if acting.decider is not None else 1
    return acting.continuous(json.dumps([float(k - 4)] * (width or 1)).encode(), uniform)


def _limit_memory() -> None:
    """Limit this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = 0
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _main() -> int:
    settings, _, body = sys.stdin.buffer.read().partition(b"\n")
    kind, values = json.loads(settings)
    with contextlib.suppress(OSError):  # no such file: the system limits nothing
        _limit_memory()
    try:
        made = tried(Kind(kind), from_json(values, Kind(kind)), body)
    except (InvalidInput, MemoryError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        said = str(error) if isinstance(error, InvalidInput) else f"model: cannot be used ({error!r})"
        sys.stdout.write(said if said.startswith("model") else f"model: {said}")
        return _REFUSED
    sys.stdout.flush()
    sys.stdout.buffer.write(b"%d %d\n%b%b" % (len(made.policy), made.rows, made.policy, made.learner or b""))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
