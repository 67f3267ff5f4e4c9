"""Render an `Evaluation` as text, as a table for the terminal, and as HTML for notebooks."""

from __future__ import annotations

import html
import io
import math
from typing import TYPE_CHECKING

from o2pl.evaluation.results import Evaluation, Valued

if TYPE_CHECKING:
    from rich.table import Table


def evaluation_table(found: Evaluation) -> Table:
    """Return a rich table of the estimates, the baseline and the difference."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("estimator")
    for heading in ("estimate", "from", "to"):
        table.add_column(heading, justify="right")
    table.add_column("", overflow="fold")
    for one in _evaluation_rows(found):
        style = "bold" if one.name in (found.headline, "difference") else ""
        table.add_row(
            one.name,
            _evaluation_report_number(one.value),
            _evaluation_report_number(one.low),
            _evaluation_report_number(one.high),
            one.says,
            style=style,
        )
    return table


def _evaluation_rows(found: Evaluation) -> list[Valued]:
    rows = list(found.estimates)
    if found.baseline is not None and found.difference is not None:
        base = found.baseline
        rows += [Valued(f"baseline: {base.name}", "", base.value, base.low, base.high), found.difference]
    return rows


def evaluation_lines(found: Evaluation) -> list[str]:
    """Return the lines below the table."""
    seen = found.diagnostics
    kind = "anytime-valid" if found.at_any_time else "fixed sample"
    lines = [
        f"n = {seen.n:,}, effective sample size {seen.effective:,.0f}, mean weight {seen.mean_weight:.3f},"
        f" {seen.clipping.rows:.1%} of rows above the clip {seen.clip:.1f}",
        f"intervals of {_exact_in_evaluation_report(found)}: {1 - found.delta:.0%}, {kind}; the others are approximate",
        f"propensities: {_calibrated_in_evaluation_report(found)}",
    ]
    lines += evaluation_sensitivity_lines(found)
    lines.append(f"verdict: {found.verdict}")
    return lines + [f"warning: {warning}" for warning in found.warnings]


def evaluation_sensitivity_lines(found: Evaluation) -> list[str]:
    """Return the table of Γ; empty for logged propensities."""
    if found.sensitivity is None:
        return []
    of = "the policy is worth" if found.difference is None else "policy minus baseline is"
    lines = [f"if the true odds of the actions are off by a factor of at most Γ, {of}"]
    lines.append(f"{'Γ':>8}  {'estimate':^20}  {f'{1 - found.delta:.0%} interval':^20}")
    for one in found.sensitivity.ranges:
        ends = [_evaluation_report_number(end) for end in (one.lowest, one.highest, one.low, one.high)]
        lines.append(f"{one.gamma:8g}  {ends[0]:>8} to {ends[1]:<8}  {ends[2]:>8} to {ends[3]:<8}")
    flips = found.sensitivity.flips
    if found.difference is not None and 1 < flips < math.inf:
        lines.append(f"the verdict changes at Γ = {flips:.2f}")
    return lines


def _exact_in_evaluation_report(found: Evaluation) -> str:
    """Name the rows of the table whose intervals verdicts come from."""
    return found.headline if found.difference is None else f"{found.headline}, the baseline and the difference"


def _calibrated_in_evaluation_report(found: Evaluation) -> str:
    test = found.diagnostics.calibration
    said = "too few rows to test" if not test.tests else f"p = {test.p_value:.2g} ({test.tests} tests)"
    return f"estimated, {said}" if found.why_estimated else said


def evaluation_text(found: Evaluation) -> str:
    from rich.console import Console

    written = io.StringIO()
    Console(file=written, width=110, color_system=None).print(evaluation_table(found))
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    return "\n".join([*lines, "", *evaluation_lines(found)])


_STYLE = (
    ".o2pl{font:14px/1.45 system-ui,sans-serif;max-width:60em;color:#1a1a1a;background:#fff;padding:.8em}"
    ".o2pl .scroll{overflow-x:auto}.o2pl table{border-collapse:collapse;width:100%}"
    ".o2pl th,.o2pl td{text-align:right;padding:.25em .6em;border-bottom:1px solid #ddd;white-space:nowrap}"
    ".o2pl th:first-child,.o2pl td:first-child{text-align:left}"
    ".o2pl tr.main td{font-weight:600;background:#eef5fb}"
    ".o2pl td.bar{min-width:9em;width:40%}.o2pl .track{position:relative;height:1em;background:#f1f1f1}"
    ".o2pl .span{position:absolute;top:.35em;height:.3em;background:#0072B2}"
    ".o2pl .dot{position:absolute;top:.15em;width:.7em;height:.7em;margin-left:-.35em;border-radius:50%}"
    ".o2pl .dot{background:#0072B2}"
    ".o2pl ul{margin:.5em 0;padding-left:1.2em}.o2pl .warn{border-left:.3em solid #D55E00;padding-left:.8em}"
    "@media(max-width:520px){.o2pl .bar,.o2pl th:last-child{display:none}}"
)


def evaluation_html(found: Evaluation) -> str:
    """Return a self-contained HTML block; wide tables scroll on narrow screens."""
    rows = _evaluation_rows(found)
    values = [one for one in rows if one.name != "difference"]
    ends = [end for one in values for end in (one.low, one.value, one.high) if math.isfinite(end)]
    low, high = min(ends), max(ends)
    body = "".join(_evaluation_html_row(one, found, low, high) for one in rows)
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in evaluation_lines(found)[:3])
    warned = "".join(f"<li>{html.escape(warning)}</li>" for warning in found.warnings)
    warnings = f'<div class="warn"><strong>Warnings</strong><ul>{warned}</ul></div>' if warned else ""
    verdict = html.escape(_evaluation_html_sentence(found.verdict))
    heading = "<tr><th>estimator</th><th>estimate</th><th>from</th><th>to</th><th></th></tr>"
    return (
        f'<div class="o2pl"><style>{_STYLE}</style><p><strong>{verdict}</strong></p>'
        + warnings
        + f'<div class="scroll"><table><thead>{heading}</thead><tbody>{body}</tbody></table></div>'
        + f"<ul>{lines}</ul>{_evaluation_html_sensitivity(found)}</div>"
    )


def _evaluation_html_sensitivity(found: Evaluation) -> str:
    if found.sensitivity is None:
        return ""
    of = "Policy" if found.difference is None else "Policy minus baseline"
    heading = "<tr><th>Γ</th><th>lowest</th><th>highest</th><th>from</th><th>to</th></tr>"
    rows = "".join(
        f"<tr><td>{one.gamma:g}</td>"
        + "".join(f"<td>{_evaluation_report_number(end)}</td>" for end in one[1:])
        + "</tr>"
        for one in found.sensitivity.ranges
    )
    said = f"{of} if the true odds of the actions are off by a factor of at most Γ: estimate and interval"
    return f'<p>{said}</p><div class="scroll"><table><thead>{heading}</thead><tbody>{rows}</tbody></table></div>'


def _evaluation_html_sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _evaluation_html_row(one: Valued, found: Evaluation, low: float, high: float) -> str:
    main = ' class="main"' if one.name in (found.headline, "difference") else ""
    bar = "" if one.name == "difference" else _evaluation_html_bar(one, low, high)
    name = f'<span title="{html.escape(one.says)}">{html.escape(one.name)}</span>'
    cells = "".join(f"<td>{_evaluation_report_number(end)}</td>" for end in (one.value, one.low, one.high))
    return f'<tr{main}><td>{name}</td>{cells}<td class="bar">{bar}</td></tr>'


def _evaluation_html_bar(one: Valued, low: float, high: float) -> str:
    def place(value: float) -> float:
        inside = min(max(value, low), high)
        return 100 * (inside - low) / (high - low) if high > low else 50.0

    left, right = place(one.low), place(one.high)
    span = f'<div class="span" style="left:{left:.1f}%;width:{right - left:.1f}%"></div>'
    return f'<div class="track">{span}<div class="dot" style="left:{place(one.value):.1f}%"></div></div>'


def _evaluation_report_number(value: float) -> str:
    if math.isinf(value):
        return "-∞" if value < 0 else "∞"
    return f"{value:.4f}" if abs(value) < 1e4 else f"{value:.5g}"
