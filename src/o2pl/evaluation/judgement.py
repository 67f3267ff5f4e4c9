"""The judgement: is a policy better than what it is compared with? The one place that forms the verdict.

What is compared on which rows is the callers' business; how it is judged is not. A verdict is uttered only from an
interval whose level is kept in the worlds of docs/guarantees.md (`bounds`, `gains`), and from a log that can tell
(`trust`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from o2pl.evaluation.bounds import Kind

Verdict = Literal["better", "worse", "no difference shown", "cannot be judged"]
_UNSHOWN = 0.05  # share of decisions without support above which an open question is a question of support
EXPLORE = (
    "Let the logger explore, so that its log contains other actions too: exploration=0.05 keeps each at 0.05/K or more,"
    " at a small cost in reward (the guide lists it)"
)
_FEW = 10.0  # effective rows below which an open question is one of rows


@dataclass(frozen=True)
class Judgement:
    """What a log says about a policy and what it is compared with. `str` is the sentence."""

    verdict: Verdict
    policy: str
    baseline: str
    estimate: float  # of policy minus baseline
    low: float
    high: float
    kind: Kind  # of the interval
    confidence: float
    rows: int
    effective: float  # effective sample size
    unsupported: float  # share of the decisions that the log hardly shows
    reason: str  # why not, or what to do
    tolerance: float = 0.0  # by which the policy may be worse: "better" is then "not worse by more than that"
    condition: str = ""  # under which it holds, if there is one: ", over …"

    @property
    def better(self) -> bool:
        return self.verdict == "better"

    @property
    def sign(self) -> int:
        """1: better, -1: worse, 0: neither is shown."""
        return (self.verdict == "better") - (self.verdict == "worse")

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high

    def __bool__(self) -> bool:
        raise TypeError("a Judgement has four verdicts: use .better, or .verdict")

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, condition: str = "") -> str:
        """Return the verdict as a sentence. condition: a further one."""
        when = " at any time" if self.kind.endswith("any time") else ""
        sure = f"with {self.confidence:.0%} confidence{when}{self.condition}{condition}"
        beyond = f" by more than {self.tolerance:g}" if self.tolerance else ""
        if self.verdict in ("better", "worse"):
            said = "not worse" if self.tolerance and self.better else self.verdict
            return f"{self.policy} is {said} than {self.baseline}{beyond}, {sure}"
        if self.verdict == "cannot be judged":
            return f"no conclusion about {self.policy}: {self.reason}"
        if self.tolerance:
            return f"this log does not show whether {self.policy} is worse than {self.baseline}{beyond}"
        return f"{self.policy} and {self.baseline} cannot be distinguished with this log"


def judge(
    policy: str, baseline: str, estimate: float, low: float, high: float, *, delta: float, kind: Kind, rows: int,
    effective: float, unsupported: float = 0.0, doubt: str = "", tolerance: float = 0.0, condition: str = "",
) -> Judgement:  # fmt: skip
    """Form the verdict from the interval of policy minus baseline. doubt: why the log cannot tell at all."""
    verdict: Verdict = "no difference shown"
    reason = doubt
    if doubt:
        verdict = "cannot be judged"
    elif low > -tolerance:
        verdict = "better"
    elif high < -tolerance:
        verdict = "worse"
    elif unsupported > _UNSHOWN:
        verdict, reason = "cannot be judged", unsupported_reason(unsupported, rows)
    elif effective < min(_FEW, rows / 5) and not (low == high == 0):
        verdict, reason = "cannot be judged", few_rows(rows, effective)
    return Judgement(
        verdict,
        policy,
        baseline,
        estimate,
        low,
        high,
        kind,
        1 - delta,
        rows,
        effective,
        unsupported,
        reason,
        tolerance,
        condition,
    )


def unsupported_reason(share: float, rows: int) -> str:
    """Say that the log does not support a policy, and what to do."""
    return f"the log does not support the comparison: it hardly shows {share:.0%} of the decisions concerned. {EXPLORE}"


def few_rows(rows: int, effective: float) -> str:
    return f"the log does not support it: {rows:,} rows have an effective sample size of {effective:.0f}. {EXPLORE}"


@dataclass(frozen=True)
class DeployVerdict:
    """Whether a policy can replace a baseline: true or false, with the reason. `str` gives the reason."""

    safe: bool
    estimate: float  # estimated gain over the baseline, in rewards; nan if the log cannot say
    bound: float  # lower confidence bound of the gain
    effective: float  # effective sample size of the comparison
    reason: str
    judgement: Judgement

    def __bool__(self) -> bool:
        return self.safe

    def __str__(self) -> str:
        return f"{'safe' if self.safe else 'not safe'} to deploy: {self.reason}"


def deploying(found: Judgement, tolerance: float = 0.0) -> DeployVerdict:
    """Return whether to deploy, from a judgement with this tolerance."""
    name = f"the baseline ({found.baseline})" if found.baseline != "baseline" else "the baseline"
    numbers = (
        f"estimated gain over {name} {found.estimate:.4g}, at least {found.low:.4g} with {found.confidence:.0%}"
        f" confidence{found.condition}; {found.rows:,} rows, effective sample size {found.effective:,.0f}"
    )
    if found.better:
        reason = numbers
    elif found.verdict == "cannot be judged":
        reason = f"{found.reason}. ({numbers})"
    elif found.estimate < 0:
        reason = f"it appears to be worse. ({numbers})"
    else:
        reason = (
            f"the log does not show a gain above {0 - tolerance:g} with confidence: more rows are needed. ({numbers})"
        )
    return DeployVerdict(found.better, found.estimate, found.low, found.effective, reason, found)
