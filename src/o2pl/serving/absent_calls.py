"""Personalizer's calls that this service does not have: each is answered with the commands that do it."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable

from o2pl.serving.personalizer_api import PREFIX, VERSIONS
from o2pl.serving.problems import Problem, Reply
from o2pl.serving.service import Call, Route, in_versions

_EXPORT = "o2pl export log.parquet --app {app}"
_EVALUATE = (_EXPORT, "o2pl evaluate log.parquet --policy uniform --baseline logged --rewards {low:g},{high:g}")
_APPLY = (
    _EXPORT,
    "o2pl fit log.parquet --out policy.o2pl --rewards {low:g},{high:g}",
    "o2pl models import policy.o2pl --app {app}",
)
_EXPLAIN = ("o2pl explain EVENT --app {app}",)
_LOGS = (
    "o2pl fit old.dsjson --out policy.o2pl --rewards {low:g},{high:g}",
    "o2pl models import policy.o2pl --app {app}",
)

ABSENT: dict[tuple[str, str], tuple[str, ...]] = {  # method and path: the commands instead
    ("GET", "/evaluations"): _EVALUATE,
    ("POST", "/evaluations"): _EVALUATE,
    ("GET", "/evaluations/{evaluationId}"): _EVALUATE,
    ("PUT", "/evaluations/{evaluationId}"): _EVALUATE,
    ("DELETE", "/evaluations/{evaluationId}"): _EVALUATE,
    ("POST", "/configurations/applyFromEvaluation"): _APPLY,
    ("GET", "/featureImportances"): _EXPLAIN,
    ("GET", "/featureImportances/{featureImportanceId}"): _EXPLAIN,
    ("PUT", "/featureImportances/{featureImportanceId}"): _EXPLAIN,
    ("POST", "/featureImportances/{featureImportanceId}"): _EXPLAIN,
    ("DELETE", "/featureImportances/{featureImportanceId}"): _EXPLAIN,
    ("POST", "/logs/interactions"): _LOGS,
    ("POST", "/logs/observations"): _LOGS,
}


def _instead(path: str, commands: tuple[str, ...]) -> Callable[[Call], Awaitable[Reply]]:
    async def handler(call: Call) -> Reply:
        application = call.served.application
        low, high = application.settings.reward_range
        said = "`, then `".join(commands).format(app=shlex.quote(application.name), low=low, high=high)
        raise Problem(
            501, "OperationNotAllowed", f"{path.split('/')[-1 if '{' not in path else -2]}: not part of this service."
            f" Use the command line next to its database: `{said}`",
        )  # fmt: skip

    return handler


ROUTES = in_versions(
    [
        Route(method, path, _instead(path, commands), "OperationNotAllowed", "Not supported", "read", documented=False)
        for (method, path), commands in ABSENT.items()
    ],
    PREFIX,
    VERSIONS,
    "none",  # the document shows what there is
)
