"""The demo's page: one file that works offline; figures first, then what to do next."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from functools import partial

from o2pl.demo import pictures
from o2pl.demo.improved import Improvement
from o2pl.demo.judged import EXPLORATION, OldRows
from o2pl.demo.online import BANDIT, UNIFORM, VW, Online
from o2pl.demo.served import ServedCalls
from o2pl.extras import extra_install_command
from o2pl.version import __version__

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #555; --line: #d9d9d9; --card: #fff; --ground: #f4f4f2;
  --code: #f1f1ee; --ours: #c2371b; --known: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #b0b0b0; --line: #3c3c3c; --card: #1f1f21;
  --ground: #151516; --code: #2a2a2d; --ours: #ff8a65; --known: #6cb8f0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 74rem; padding: 1.2rem 1rem 2rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; line-height: 1.2; }
h2 { font-size: 1.08rem; margin: 0 0 .4rem; line-height: 1.3; }
.lead { margin: .4rem 0 1rem; max-width: 46rem; }
.soft { color: var(--soft); font-size: .88rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: .9rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .9rem; min-width: 0; }
.card p { margin: .4rem 0; }
img { display: block; width: 100%; height: auto; }
pre { background: var(--code); border-radius: .4rem; padding: .55rem .7rem; overflow-x: auto; font-size: .82rem;
  line-height: 1.45; margin: .5rem 0 0; }
code { background: var(--code); border-radius: .25rem; padding: .05rem .3rem; font-size: .88em;
  overflow-wrap: anywhere; }
pre code { padding: 0; background: none; overflow-wrap: normal; }
details summary { cursor: pointer; color: var(--soft); font-size: .88rem; margin-top: .4rem; }
.step { color: var(--soft); font-size: .8rem; text-transform: uppercase; letter-spacing: .04em; margin: 0; }
dl { display: grid; grid-template-columns: minmax(9rem, 16rem) 1fr; gap: .45rem 1rem; margin: .3rem 0 0; }
dt { font-weight: 600; } dd { margin: 0; min-width: 0; }
.ours { color: var(--ours); font-weight: 600; } .known { color: var(--known); font-weight: 600; }
.next { margin-top: .9rem; }
@media (max-width: 42rem) { dl { grid-template-columns: 1fr; gap: .1rem; } dd { margin-bottom: .6rem; } }
"""


def page(
    online: Online, judged: OldRows, improved: Sequence[Improvement], served: ServedCalls | None, seconds: float
) -> str:
    cards = [
        _page_online(online),
        _page_judged(judged),
        _page_improved(improved),
        _page_without_service() if served is None else _page_served(served),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>o2pl: the demo</title><style>{_STYLE}</style></head><body>\n"
        "<h1>o2pl chooses actions and learns from their rewards</h1>"
        '<p class="lead">Which article to show, which offer to send, which name to give a picture: a context comes in,'
        " an action goes out, and only the reward of that action comes back. Everything below was computed on this"
        f" machine, in {seconds:.0f} seconds, from data that needs no download.</p>"
        f'<main class="cards">{"".join(cards)}</main>{_page_next()}'
        f'<p class="soft">o2pl {__version__}. Seeds are fixed: <code>o2pl demo</code> makes the same decisions again;'
        " the service's depend on time.</p></body></html>\n"
    )


def _page_card(step: str, title: str, picture: tuple[bytes, bytes], alt: str, text: str, code: str) -> str:
    return (
        '<section class="card"><p'
        f' class="step">{step}</p><h2>{html.escape(title)}</h2>{_page_picture(picture, alt)}{text}'
        f"<details><summary>The code</summary><pre><code>{html.escape(code)}</code></pre></details></section>"
    )


def _page_picture(made: tuple[bytes, bytes], alt: str) -> str:
    light, dark = (f"data:image/svg+xml;base64,{base64.b64encode(each).decode()}" for each in made)
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{html.escape(alt)}"></picture>'
    )


def _page_online(found: Online) -> str:
    means = {name: found.mean(name) for name in found.rewards}
    rival = max((name for name in means if name not in (BANDIT, UNIFORM)), key=means.__getitem__)
    seeds, rounds = found.rewards[BANDIT].shape
    without = (
        "" if VW in means else f" Vowpal Wabbit is not installed here: <code>{extra_install_command('vw')}</code>."
    )
    return _page_card(
        "1 · Learn online",
        f"{BANDIT} earned {means[BANDIT]:.2f} per round; the best rival, {rival}, {means[rival]:.2f}",
        pictures.picture_in_both_themes(partial(pictures.picture_online, found)),
        "Mean reward so far by round, for each learner",
        f"<p>{rounds:,} handwritten digits come one by one. A learner picks a label and learns only right or wrong."
        f" No setting was chosen for <code>{BANDIT}</code>. Mean of {seeds} orders of the digits; bands show the lowest"
        f" and the highest.{without}</p>",
        "learner = o2pl.Bandit(n_actions=10)\n"
        "decision = learner.act(picture)       # an action, and its exact probability\n"
        "learner.update(decision, reward)      # 1.0 for the right name, else 0.0",
    )


def _page_judged(found: OldRows) -> str:
    held = sum(one.holds for one in found.policies)
    return _page_card(
        "2 · Evaluate other policies from its log",
        f"The truth lies in {held} of {len(found.policies)} intervals",
        pictures.picture_in_both_themes(partial(pictures.picture_judged, found)),
        "Estimates with intervals for each policy, and what it would really have earned",
        f'<p><span class="known">● estimate and 95 % interval</span>, <span class="ours">◇ truth</span>. The log has'
        f" {found.rows:,} decisions of <code>Bandit(exploration={EXPLORATION})</code>, which earned {found.earned:.2f};"
        " the policies judged did not make them. The less a policy does what the log shows, the wider its"
        " interval. All intervals hold together, whenever you look.</p>",
        'print(o2pl.evaluate(learner.log_, {"A": classifier_a, "B": classifier_b, "uniform": "uniform"}))\n'
        f"# {found.verdict}",
    )


def _page_improved(found: Sequence[Improvement]) -> str:
    deployed = [one for one in found if one.deploy]
    worse = sum(one.gain < 0 for one in found)
    naive_worse = sum(one.naive < 0 for one in found)
    gain, naive = (sum(each) / len(found) for each in ([one.gain for one in found], [one.naive for one in found]))
    kept = sum(one.kept for one in deployed)
    return _page_card(
        "3 · Improve a policy that is in production",
        f"{len(found)} logs: {len(deployed)} new policies deployed, {worse} of them worse than the incumbent",
        pictures.picture_in_both_themes(partial(pictures.picture_improved, found)),
        "For each log the gain over the incumbent: promised, true, and that of learning without pessimism",
        f'<p><span class="ours">| promised with 90 % confidence, ● true gain</span>, <span class="known">× without'
        f" pessimism</span>. Each log has some decisions of a rough policy, which explores a little; rewards have no"
        f" noise, with which so few rows would decide nothing. o2pl deploys a new"
        f" policy only where the log supports it, else the incumbent stays; {kept} of {len(deployed)} promises were"
        f" kept. Mean gain {gain:+.3f}. Importance weights alone gain {naive:+.3f} and make {naive_worse} of"
        f" {len(found)} worse.</p>",
        "learner = o2pl.O2PL.from_incumbent(log)\nlearner.improvement_   # deploy or not, and the gain that is sure",
    )


def _page_served(found: ServedCalls) -> str:
    tenth = len(found.calls) // 10
    first, last = found.clicks("chosen", 0, tenth), found.clicks("chosen", -tenth, len(found.calls))
    best = found.clicks("best", -tenth, len(found.calls))
    call = json.dumps(found.asked, indent=1)
    return _page_card(
        "4 · Decide over HTTP",
        f"Clicks per reader rose from {first:.2f} to {last:.2f}; the best possible is {best:.2f}",
        pictures.picture_in_both_themes(partial(pictures.picture_served, found)),
        "Expected clicks per reader as calls go by: the service, the best choice, the editor's choice, random choice",
        f"<p><code>o2pl serve</code> ran beside this demo. {len(found.calls):,} simulated readers asked it which of six"
        f" articles to show, in {found.seconds:.0f} seconds, and it learned from their clicks meanwhile. One call took"
        f" {found.milliseconds:.1f} ms at the median. It speaks Azure Personalizer's API.</p>",
        f"POST /personalizer/v1.0/rank\n{call}\n\n201\n{json.dumps(found.answered, indent=1)}",
    )


def _page_without_service() -> str:
    return (
        '<section class="card"><p class="step">4 · Decide over HTTP</p><h2>The decision service was left out</h2>'
        f"<p>It needs an extra: <code>{html.escape(extra_install_command('serve'))}</code>, then <code>o2pl"
        " serve</code>.</p>"
        "</section>"
    )


_NEXT = (
    ("You have a task", "<code>pip install o2pl</code>, then <code>o2pl.Bandit()</code>. docs/guide.md has a page per"
     " task: users and items, words, prices, late rewards."),
    ("You have a log", "<code>o2pl describe LOG</code> says what it is good for, and what to type next."
     " <code>o2pl fit LOG --out MODEL</code> learns; <code>o2pl evaluate LOG --policy MODEL --baseline logged</code>"
     " says whether it is better. VW's dsjson and text, Parquet and CSV are read as they are."),
    ("You want a service", "<code>o2pl serve</code> in one terminal, <code>o2pl simulate URL --key KEY</code> in"
     " another; the address shows its page. docs/service.md."),
    ("You want proof", "<code>make reproduce</code> runs the paper's experiments at a small size; the full results are"
     " in docs/reproduction. <code>make bench</code> measures speed beside VW."),
    ("You want to know when not to", "docs/limits.md: what o2pl does not do, and what to use instead."),
)  # fmt: skip


def _page_next() -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in _NEXT)
    return f'<section class="card next"><h2>What next</h2><dl>{rows}</dl></section>'
