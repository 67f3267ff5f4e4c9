"""Render an `Explanation` as text, as HTML for notebooks, and as a figure."""

from __future__ import annotations

import html
import io
import math
from textwrap import fill
from typing import TYPE_CHECKING, Any

from o2pl.drawing import new_figure, tidy
from o2pl.explaining.explanation import Explanation, Feature

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FOR, _AGAINST, _GREY = "#0072B2", "#D55E00", "#6e6e6e"
_ROWS = 12  # largest number of listed features and actions
_PRODUCTS = 5
_INTERCEPT = "average context"
_BONUS = "exploration"


def explanation_heading(found: Explanation) -> str:
    """Return the decision in one line."""
    if found.against is None:
        return f"{_called_in_explanation(found.action)}: the only action"
    first, second = (found.probabilities[action] for action in (found.action, found.against))
    one, other = _called_in_explanation(found.action), _called_in_explanation(found.against)
    return f"{one} (probability {first:.4f}) against {other} ({second:.4f})"


def _called_in_explanation(action: object) -> str:
    return action if isinstance(action, str) else f"action {action}"


def _listed_in_explanation(found: Explanation, most: int) -> list[tuple[str, str, float, float | None]]:
    """Return rows (name, value, contribution, own part): the largest features, the rest, intercept and bonus."""
    some, rest = found.features[:most], found.features[most:]
    rows: list[tuple[str, str, float, float | None]] = [
        (one.name, _value_in_explanation(one), one.adds, one.alone) for one in some
    ]
    if rest:
        rows.append((f"{len(rest)} more", "", sum(one.adds for one in rest), sum(one.alone for one in rest)))
    if found.intercept:  # none for items: it is the same for all
        rows.append((_INTERCEPT, "", found.intercept, None))
    if found.bonus:
        rows.append((_BONUS, "", found.bonus, None))
    return rows


def _value_in_explanation(one: Feature) -> str:
    if not one.against or one.against == one.value:
        return one.value
    return f"{one.value or 'none'} against {one.against}"


def _explanation_sum_line(found: Explanation) -> str:
    total = found.difference + found.bonus
    if found.sharpness is None:
        line = f"sum {total:+.3f} = difference of the log-odds of a reward, uncertain by {found.deviation:.2f}"
        line += f"; {found.exploring:.2%} of decisions in this context are exploration"
    else:
        line = f"sum {total:+.3f}, times sharpness {found.sharpness:g} = log ratio of the probabilities"
    if found.epsilon:
        line += f"; {found.epsilon:.2%} of all decisions are uniform choice"
    return line


def _products_in_explanation(found: Explanation) -> list[str]:
    products = [term for term in found.terms if len(term.features) > 1][:_PRODUCTS]
    return [f"{term.name} {term.adds:+.3f}" for term in products]


def explanation_notes(found: Explanation) -> list[str]:
    """Return the lines below the tables."""
    lines = []
    if found.against is not None:
        lines.append(_explanation_sum_line(found))
    if products := _products_in_explanation(found):
        lines.append("products, split equally between their two features: " + "; ".join(products))
    if len(found.members) > 1:
        said = (f"{one.name} {one.weight:.2f} ({one.difference:+.2f})" for one in found.members)
        lines.append("members, by weight (and their differences): " + "; ".join(said))
    if found.unknown:
        some = ", ".join(found.unknown[:_ROWS]) + (", …" if len(found.unknown) > _ROWS else "")
        lines.append(f"not learned from yet: {some}")
    if found.support is None:
        lines.append("support: no log available")
    else:
        shown = [found.action] if found.against is None else [found.action, found.against]
        lines += [f"support: {found.support.says(action)}" for action in shown]
    return lines


def _likeliest_in_explanation(found: Explanation) -> list[Any]:
    """Return the two compared actions and the most likely others."""
    others = sorted(found.probabilities, key=lambda action: -found.probabilities[action])
    first = [found.action] if found.against is None else [found.action, found.against]
    return [*first, *(action for action in others if action not in first)][:_ROWS]


def _explanation_action_cells(found: Explanation, action: object) -> list[str]:
    cells = [str(action), f"{found.probabilities[action]:.4f}", f"{found.without_exploration[action]:.4f}"]
    if found.support is not None:
        own = found.support.actions.get(action)
        plays = [] if found.support.offers else ["" if own is None else f"{own.plays:,}"]
        near = (
            ["", ""]
            if own is None
            else [f"{own.near_plays:,} of {own.near:,}", _reward_in_explanation(own.near_reward)]
        )
        cells += plays + near
    return cells


def _reward_in_explanation(mean: float) -> str:
    return "" if math.isnan(mean) else f"{mean:.3f}"


def _explanation_action_heads(found: Explanation) -> list[str]:
    heads = ["action", "probability", "without exploration"]
    if found.support is not None:
        heads += [*([] if found.support.offers else ["plays"]), "plays near", "reward near"]
    return heads


def explanation_tables(found: Explanation) -> list[Any]:
    """Return Rich tables of the actions and of the features."""
    from rich.table import Table

    actions = Table(box=None, pad_edge=False)
    for place, head in enumerate(_explanation_action_heads(found)):
        actions.add_column(head, justify="right" if place else "left", no_wrap=bool(place))
    for action in _likeliest_in_explanation(found):
        actions.add_row(*_explanation_action_cells(found, action), style="bold" if action == found.action else "")
    if found.against is None:
        return [actions]
    features = Table(box=None, pad_edge=False)
    features.add_column(f"in favour of {_called_in_explanation(found.action)}", overflow="fold")
    features.add_column("value", overflow="fold")
    for head in ("adds", "alone", "with others"):
        features.add_column(head, justify="right", no_wrap=True)
    for name, value, adds, alone in _listed_in_explanation(found, _ROWS):
        apart = ("", "") if alone is None else (f"{alone:+.3f}", f"{adds - alone:+.3f}")
        features.add_row(name, value, f"{adds:+.3f}", *apart)
    return [actions, features]


def explanation_text(found: Explanation) -> str:
    from rich.console import Console

    written = io.StringIO()
    console = Console(file=written, width=110, color_system=None)
    console.print(explanation_heading(found), highlight=False, markup=False)
    for table in explanation_tables(found):
        console.print()
        console.print(table, highlight=False, markup=False)
    lines = [line.rstrip() for line in written.getvalue().splitlines()]
    return "\n".join([*lines, "", *(fill(note, 110, subsequent_indent="  ") for note in explanation_notes(found))])


# -- notebooks

_STYLE = (
    ".o2pl{font:14px/1.45 system-ui,sans-serif;max-width:56em;color:#1a1a1a;background:#fff;padding:.8em}"
    ".o2pl .scroll{overflow-x:auto}.o2pl table{border-collapse:collapse;margin:.4em 0 .9em}"
    ".o2pl th,.o2pl td{text-align:right;padding:.2em .7em;border-bottom:1px solid #ddd;white-space:nowrap}"
    ".o2pl th:first-child,.o2pl td:first-child{text-align:left}"
    ".o2pl tr.main td{font-weight:600;background:#eef5fb}"
    ".o2pl td.bar{width:16em;min-width:8em}.o2pl .track{position:relative;height:1em;background:#f4f4f4}"
    ".o2pl .track div{position:absolute;top:.1em;height:.8em}"
    ".o2pl ul{margin:.4em 0;padding-left:1.2em}"
    "@media(max-width:520px){.o2pl .bar{display:none}}"
)


def explanation_html(found: Explanation) -> str:
    """Return a self-contained HTML block; wide tables scroll on narrow screens."""
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in _explanation_action_heads(found))
    actions = "".join(
        f"<tr{_explanation_html_main(action == found.action)}>"
        f"{_explanation_html_cells(_explanation_action_cells(found, action))}</tr>"
        for action in _likeliest_in_explanation(found)
    )
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in explanation_notes(found))
    block = f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{actions}</tbody></table></div>'
    if found.against is not None:
        block += _explanation_features_html(found)
    title = f"<p><strong>{html.escape(explanation_heading(found))}</strong></p>"
    page = f'<div class="o2pl"><style>{_STYLE}</style>{title}{block}<ul>{lines}</ul></div>'
    return page.encode("ascii", "xmlcharrefreplace").decode()  # ASCII only, so that files need no encoding declaration


def _explanation_features_html(found: Explanation) -> str:
    rows = _listed_in_explanation(found, _ROWS)
    largest = max(abs(row[2]) for row in rows) or 1.0
    body = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td><td>{adds:+.3f}</td>"
        f'<td class="bar">{_explanation_bar(adds / largest)}</td></tr>'
        for name, value, adds, _ in rows
    )
    title = html.escape(f"in favour of {_called_in_explanation(found.action)}")
    heads = f'<th>{title}</th><th>value</th><th>adds</th><th class="bar"></th>'
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _explanation_html_main(main: bool) -> str:
    return ' class="main"' if main else ""


def _explanation_html_cells(cells: list[str]) -> str:
    return "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)


def _explanation_bar(share: float) -> str:
    """Return a bar from the centre: to the right in favour of the action."""
    width, colour = 50 * abs(share), _FOR if share > 0 else _AGAINST
    left = 50 if share > 0 else 50 - width
    return f'<div class="track"><div style="left:{left:.1f}%;width:{width:.1f}%;background:{colour}"></div></div>'


# -- the figure


def draw_explanation(found: Explanation, most: int = _ROWS) -> Figure:
    """Draw the contributions as bars: to the right for the action, to the left for the other."""
    rows = _listed_in_explanation(found, most) if found.against is not None else []
    figure = new_figure(8.5, 1.5 + 0.34 * max(len(rows), 1))
    axes = figure.subplots()
    for place, (name, _, adds, _) in enumerate(rows):
        feature = name not in (_INTERCEPT, _BONUS)
        colour = (_FOR if adds > 0 else _AGAINST) if feature else _GREY
        axes.barh(place, adds, color=colour, height=0.7)
        side = 1 if adds >= 0 else -1
        axes.annotate(
            f"{adds:+.2f}", (adds, place), (4 * side, 0), textcoords="offset points", va="center",
            ha="left" if adds >= 0 else "right", fontsize=9,
        )  # fmt: skip
    labels = [_short_in_explanation(f"{name} = {value}" if value else name) for name, value, _, _ in rows]
    axes.set_yticks(range(len(rows)), labels)
    axes.invert_yaxis()
    axes.axvline(0, color=_GREY, linewidth=1)
    axes.margins(x=0.16)
    for_one, for_other = (
        f"in favour of {_short_in_explanation(_called_in_explanation(action))}"
        for action in (found.action, found.against)
    )
    axes.set_xlabel(f"←  {for_other}      {for_one}  →")
    axes.set_title(explanation_heading(found), loc="left", fontsize=11)
    tidy(axes, "x")
    return figure


def _short_in_explanation(text: str, most: int = 48) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
