"""The judgement: is a policy better than what it is compared with? The one place that forms the verdict, and its words.

What is compared on which rows is the callers' business; how it is judged is not. A verdict is uttered only from an
interval whose level is kept in the worlds of docs/guarantees.md (`bounds`, `gains`), and from a log that can tell
(`trust`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from o2pl.evaluation.bounds import Kind

Verdict = Literal["better", "worse", "no difference shown", "cannot be judged"]
_UNSHOWN = 0.05  # share of decisions without support above which an open question is a question of support
_EXPLORED, _SHOWN = 0.05, 30  # advised exploration; rows that then show what the log lacks
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
        sure = f"{judged_with_confidence(self.confidence)}{when}{self.condition}{condition}"
        beyond = f" by more than {self.tolerance:g}" if self.tolerance else ""
        if self.verdict in ("better", "worse"):
            said = "not worse" if self.tolerance and self.better else self.verdict
            return f"{self.policy} is {said} than {self.baseline}{beyond}, {sure}"
        if self.verdict == "cannot be judged":
            return judged_without_conclusion(self.reason, self.policy)
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
        verdict, reason = "cannot be judged", judgement_unsupported(unsupported, rows)
    elif effective < min(_FEW, rows / 5) and not (low == high == 0):
        verdict, reason = "cannot be judged", judgement_few_rows(rows, effective)
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


# -- words


def judged_with_confidence(confidence: float) -> str:
    return f"with {100 * confidence:.6g}% confidence"


def judged_without_conclusion(reason: str, policy: str = "") -> str:
    return f"no conclusion{f' about {policy}' if policy else ''}: {reason}"


def judged_among_candidates(left: Sequence[str], of: int, confidence: float, doubt: str, wait: str) -> str:
    """Return the verdict on several policies. left: those that are not behind the leader, which is the first."""
    sure = f"{judged_with_confidence(confidence)} at any time"
    if doubt:
        return judged_without_conclusion(doubt)
    if len(left) == 1:
        return f"{left[0]} is the best of {of}, {sure}"
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    gone = f"; {of - len(left)} worse {sure}" if of > len(left) else ""
    return f"{', '.join(left[:5])}{more} may each be the best{gone}; {wait}"


def judgement_of_candidate(against: Judgement | None, row: int | None) -> str:
    """Return what a table says of a candidate. against: of the leader against it, since this row; None: it leads."""
    if against is None:
        return "leads"
    if against.better:
        return f"worse with confidence since row {row:,}"
    return "cannot be judged" if against.verdict == "cannot be judged" else "may be the best"


def judgement_advice(found: str, least: float | None, instead: str = "") -> str:
    """Say what to do about an incumbent. found: the verdict; least: the gain that is certain; None: none is."""
    if least is None:
        return f"{found}: keep the incumbent. {instead}"
    return f"{found}, by at least {least:.4f}: deploy it"


def judgement_explore(share: float = 1.0) -> str:
    """Say what to do about a log that hardly shows a share of the decisions: how much to explore, for how many rows."""
    rows = float(f"{_SHOWN / (_EXPLORED * share):.2g}")
    return (
        f"Let the logger explore, so that its log contains other actions too: exploration={_EXPLORED:g} keeps each of K"
        f" actions at {_EXPLORED:g}/K or more, at a small cost in reward (the guide lists it); about {rows:,.0f} K rows"
        f" then show the missing decisions {_SHOWN} times"
    )


def judgement_unsupported(share: float, rows: int) -> str:
    """Say that the log does not support a policy, and what to do."""
    shown = f"it hardly shows {share:.0%} of the decisions concerned"
    return f"the log does not support the comparison: {shown}. {judgement_explore(share)}"


def judgement_few_rows(rows: int, effective: float) -> str:
    said = f"the log does not support it: {rows:,} rows have an effective sample size of {effective:.0f}."
    return f"{said} {judgement_explore()}"


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


def judgement_on_deploying(found: Judgement, tolerance: float = 0.0) -> DeployVerdict:
    """Return whether to deploy, from a judgement with this tolerance."""
    name = f"the baseline ({found.baseline})" if found.baseline != "baseline" else "the baseline"
    numbers = (
        f"estimated gain over {name} {found.estimate:.4g}, at least {found.low:.4g}"
        f" {judged_with_confidence(found.confidence)}{found.condition}; {found.rows:,} rows, effective sample size"
        f" {found.effective:,.0f}"
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
