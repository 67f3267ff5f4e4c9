"""The page, in a real Chromium where there is one, on a real store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import numpy as np
import pytest
from tests.serving.clients import listening
from tests.serving.filled import fill

from o2pl.serving import control_comparison, page_api
from o2pl.serving.api import make_app
from o2pl.serving.applications import NewApplication
from o2pl.serving.control_assignment import experiment_of
from o2pl.serving.control_comparison import Point
from o2pl.serving.gain_sequence import Contrast, added
from o2pl.serving.service import Service
from o2pl.serving.settings import Kind, MetricSettings, Settings
from o2pl.serving.store import Store
from o2pl.serving.trainer_lease import Election

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
KEY = "Ocp-Apim-Subscription-Key"


class Running(NamedTuple):
    url: str
    store: Store
    news: NewApplication
    empty: NewApplication


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    store = Store.open(tmp_path_factory.mktemp("page") / "o2pl.sqlite")
    news, empty = fill(store, minutes=24, per_minute=40), store.add_application("empty")
    with listening(make_app(Service(store))) as url:
        yield Running(url, store, news, empty)


# -- without a browser


def test_the_page_is_one_file_that_may_run_nothing_but_itself(running: Running) -> None:
    answer = httpx.get(f"{running.url}/")
    assert answer.status_code == 200
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", answer.text)  # nothing is loaded
    assert "{page.css}" not in answer.text


@pytest.mark.parametrize("path", ["/page/summary/hour", "/page/events"])
def test_nothing_is_told_without_a_key(running: Running, path: str) -> None:
    assert httpx.get(running.url + path).status_code == 401
    assert httpx.get(running.url + path, headers={KEY: "wrong"}).status_code == 401
    assert httpx.get(running.url + path, headers={KEY: running.news.read_key}).status_code == 200
    assert httpx.get(running.url + path, headers={KEY: running.news.write_key}).status_code == 200


def test_a_key_sees_its_own_application_alone(running: Running) -> None:
    found = httpx.get(f"{running.url}/page/summary/hour", headers={KEY: running.empty.read_key}).json()
    assert (found["application"]["name"], found["state"]["decisions"]) == ("empty", 0)


def test_rolling_back_takes_the_write_key_and_a_version_that_is_there(running: Running) -> None:
    url, store, news = running.url, running.store, running.news
    refused = httpx.post(f"{url}/page/serve", json={"version": 1}, headers={KEY: news.read_key})
    assert refused.status_code == 403
    missing = httpx.post(f"{url}/page/serve", json={"version": 99}, headers={KEY: news.write_key})
    assert missing.status_code == 404
    assert store.application("news").pinned is None
    done = httpx.post(f"{url}/page/serve", json={"version": 1}, headers={KEY: news.write_key})
    assert done.status_code == 200
    assert store.served_version(news.id) == 1
    summary = httpx.get(f"{url}/page/summary/hour", headers={KEY: news.read_key}).json()
    assert summary["models"]["served"] == 1  # not what was kept from before
    httpx.post(f"{url}/page/serve", json={"version": None}, headers={KEY: news.write_key})
    assert store.application("news").pinned is None


def test_an_event_is_told_to_its_own_application_alone(running: Running) -> None:
    path = f"{running.url}/page/events/{running.store.decisions_after(running.news.id, limit=1)[0].event_id}/told"
    assert httpx.get(path, headers={KEY: running.news.read_key}).json()[0]["actions"]
    assert httpx.get(path, headers={KEY: running.empty.read_key}).status_code == 404
    assert httpx.get(path).status_code == 401


def test_a_span_that_is_none_is_refused(running: Running) -> None:
    assert httpx.get(f"{running.url}/page/summary/aeon", headers={KEY: running.news.read_key}).status_code == 404


def test_summaries_are_kept_for_a_moment() -> None:
    kept, made = page_api._Kept(), []
    for _ in range(3):
        kept.get((1, "hour"), 100, lambda: made.append(1) or b"once")
    assert len(made) == 1
    kept.forget(1)
    assert kept.get((1, "hour"), 100, lambda: b"anew") == b"anew"


# -- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("there is no Chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, running: Running) -> Iterator[Any]:
    """A tab: `open_page(width, key, scheme)`. Nothing may go wrong in it, and it may ask nobody else."""
    contexts, problems, asked = [], [], []

    def opened(width: int = 1280, key: str | None = None, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(15_000)
        tab.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(running.url)
        if key is not None:
            tab.get_by_label("Read key").fill(key)
            tab.get_by_role("button", name="Log in").click()
            tab.wait_for_selector("#board:not([hidden]), #first:not([hidden])")
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert all(url.startswith((running.url, "data:")) for url in asked), asked
    assert not any(running.news.read_key in url or running.news.write_key in url for url in asked)
    assert [each for each in problems if not re.search("40[13]", each)] == []  # Chromium notes refused calls by itself


def test_a_wrong_key_is_refused_and_said(open_page: Any) -> None:
    tab = open_page()
    tab.get_by_label("Read key").fill("wrong")
    tab.keyboard.press("Enter")
    tab.get_by_text("Unknown key").wait_for()
    assert tab.locator("#board").is_hidden()
    assert tab.evaluate("sessionStorage.getItem('o2pl.key')") is None


def test_charts_have_marks_and_tables_have_rows(open_page: Any, running: Running) -> None:
    tab = open_page(key=running.news.read_key)
    assert tab.locator("#rewards > svg path.line").count() == 3  # the service, the baseline, uniform choice
    assert tab.locator("#rewards > svg path.band").count() == 3
    assert tab.locator("#rewards > svg circle.mark").count() >= 10
    assert tab.locator("#traffic > svg rect.bar").count() > 24
    assert tab.locator("#overlap > svg path.line").count() == 2
    assert tab.locator("#actions tbody tr").count() == 13
    assert tab.locator("#models tbody tr").count() == len(running.store.model_versions(running.news.id))
    assert tab.locator("#events tbody tr").count() == 15
    summary = httpx.get(f"{running.url}/page/summary/hour", headers={KEY: running.news.read_key}).json()
    told = summary["total"]["gains"]
    assert told["baseline"]["says"] in tab.locator("#tiles").inner_text()  # the server's judgement, word by word
    tab.locator("#traffic summary").click()
    tab.locator("#traffic details tbody tr").first.wait_for()  # browsers tell of the opening a moment later
    assert tab.locator("#traffic details tbody tr").count() == 24
    tab.get_by_label("Last day").check()
    tab.locator("#traffic details tbody tr:nth-child(10)").wait_for(state="detached")
    assert tab.locator("#traffic details tbody tr").count() in (3, 4)  # ten minutes each


def test_a_chart_of_one_minute_can_be_seen(open_page: Any, running: Running) -> None:
    """In the first minute a line is a point: it and its interval are drawn as wide as most of the minute."""
    tab = open_page(key=running.news.read_key)
    width, height = tab.evaluate(
        """() => {
            const host = document.createElement("div");
            document.body.append(host);
            host.style.width = "600px";
            const line = { name: "a", ink: "a", value: (p) => p.v, band: () => [0.2, 0.6] };
            const points = [{ at: 0, v: 0.4 }], format = (v) => v.toFixed(2);
            Charts.make(host).show({ label: "a", height: 200, points, width: 60, format, lines: [line] });
            const [band, own] = ["band", "line"].map((name) => host.querySelector(`path.${name}`).getBBox());
            return [own.width, band.height];
        }"""
    )
    assert width > 40
    assert height > 100


def with_control_group(running: Running) -> None:
    """The first application has a control group, and what is known of it."""
    settings = Settings(control_share=0.3, metrics={"complaint": MetricSettings(lower_is_better=True)})
    running.store.put_settings(running.news.id, settings)
    name, g = experiment_of(settings, Kind.RANKED), np.random.default_rng(0)
    assert name is not None
    state = control_comparison.begun(name, settings, 6000.0)
    for _ in range(5):
        control = g.random(600) < 0.3
        for asked, chance in (("reward", 0.5), ("complaint", 0.2)):
            values = (g.random(600) < chance + 0.2 * ~control).astype(float)
            state.sums[asked] = added(state.sums.get(asked) or Contrast(), values, control, 0.3, (0.0, 1.0))
        state.upto += 60
        gains = {each.name: (each.gain, each.low, each.high) for each in control_comparison.findings(state)}
        state.points.append(Point(state.upto, gains))
    state.alerts["complaint"] = "complaint: worse"
    running.store.put_note(control_comparison.note_of(running.news.id), msgspec.json.encode(state).decode())


@pytest.mark.parametrize("width", [1280, 390])
def test_a_control_group_has_a_chart_for_each_metric(open_page: Any, running: Running, width: int) -> None:
    before = running.store.settings(running.news.id)
    tab = open_page(width=width, key=running.news.read_key)
    tab.wait_for_selector("#control-card", state="hidden")
    with_control_group(running)
    tab.wait_for_selector("#control-card:not([hidden])")
    told = httpx.get(f"{running.url}/control", headers={KEY: running.news.read_key}).json()["findings"]
    said = tab.locator("#control-card").inner_text()
    for each in told:
        assert each["says"][1:] in said  # the server's judgement, word by word
    assert tab.locator("#control-table tbody tr").count() == 2
    assert tab.locator("#control-charts path.band").count() == 2
    assert "Guardrail: complaint: worse" in tab.locator("#control-alert").inner_text()
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    running.store.put_settings(running.news.id, before)
    running.store.put_note(control_comparison.note_of(running.news.id), "")


def test_it_refreshes_itself_without_a_flicker(open_page: Any, running: Running) -> None:
    tab = open_page(key=running.news.read_key)
    tab.evaluate("window.kept = document.querySelector('#events button')")
    with tab.expect_response(lambda answer: "/page/summary/hour" in answer.url, timeout=20_000):
        pass
    tab.wait_for_timeout(200)
    assert tab.evaluate("window.kept.isConnected")  # what has not changed is not made again


def test_the_model_is_rolled_back_by_keyboard(open_page: Any, running: Running) -> None:
    tab = open_page(key=running.news.read_key)
    tab.get_by_role("button", name="Serve version 2").focus()
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "ask-key"
    tab.keyboard.type(running.news.read_key)
    tab.keyboard.press("Enter")
    tab.get_by_text("This is not a write key").wait_for()
    assert running.store.application("news").pinned is None
    tab.get_by_label("Write key").fill(running.news.write_key)
    tab.keyboard.press("Enter")
    tab.get_by_text("served, pinned").wait_for()
    assert running.store.served_version(running.news.id) == 2
    tab.get_by_role("button", name="Serve the newest again").click()
    tab.get_by_label("Write key").fill(running.news.write_key)
    tab.get_by_role("button", name="Serve it", exact=True).last.click()
    tab.locator("#models [data-key=newest]").wait_for(state="detached")
    assert running.store.application("news").pinned is None


def test_everything_is_reached_by_keyboard_and_charts_speak(open_page: Any, running: Running) -> None:
    tab = open_page()
    tab.keyboard.type(running.news.read_key)  # the field has the focus
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#board:not([hidden])")
    reached = set()
    for _ in range(60):
        tab.keyboard.press("Tab")
        place = "e => e.closest('#rewards, #traffic, #overlap, #models, #events, #spans, header')?.id || e.tagName"
        reached.add(tab.evaluate(f"({place})(document.activeElement)"))
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none" or tab.evaluate(
            "document.activeElement.name === 'span' || document.activeElement === document.body"
        )
        if tab.evaluate("document.activeElement.closest('#rewards svg') !== null"):
            tab.keyboard.press("ArrowLeft")
            tab.keyboard.press("ArrowLeft")
            assert tab.locator("#rewards .tip").is_visible()
            assert "Baseline" in tab.locator("#said").inner_text()
            tab.keyboard.press("Escape")
            assert tab.locator("#rewards .tip").is_hidden()
    assert {"rewards", "traffic", "overlap", "models", "events", "spans"} <= reached


@pytest.mark.parametrize("width", [390, 760, 1280])
def test_no_width_scrolls_sideways(open_page: Any, running: Running, width: int) -> None:
    tab = open_page(width, running.news.read_key)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    if width == 390:
        assert tab.get_by_text("Scroll right to see more columns").first.is_visible()
        tab.locator("#events button").first.click()
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_follows_the_system_and_the_switch(open_page: Any, running: Running) -> None:
    def paper(tab: Any) -> int:
        return sum(map(int, re.findall(r"\d+", tab.evaluate("getComputedStyle(document.body).backgroundColor"))))

    light, dark = open_page(key=running.news.read_key), open_page(key=running.news.read_key, scheme="dark")
    assert paper(light) > 600
    assert paper(dark) < 150
    dark.get_by_role("button", name="Dark").click()
    assert paper(dark) > 600
    light.get_by_role("button", name="Dark").click()
    assert paper(light) < 150
    light.reload()
    assert paper(light) < 150  # it is remembered


def test_letters_stand_out_from_the_paper(open_page: Any, running: Running) -> None:
    """WCAG AA: 4.5 for text, in both schemes; 3 for lines of charts."""

    def contrast(one: list[float], two: list[float]) -> float:
        def light(rgb: list[float]) -> float:
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (x / 255 for x in rgb)]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        high, low = sorted([light(one), light(two)], reverse=True)
        return (high + 0.05) / (low + 0.05)

    def colour(tab: Any, name: str) -> list[float]:
        text = tab.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        return [int(text[k : k + 2], 16) for k in (1, 3, 5)]

    for scheme in ("light", "dark"):
        tab = open_page(key=running.news.read_key, scheme=scheme)
        for name in ("ink", "soft", "main", "base", "good", "bad"):
            assert contrast(colour(tab, name), colour(tab, "card")) >= 4.5, (scheme, name)
            assert contrast(colour(tab, name), colour(tab, "paper")) >= 4.5, (scheme, name)
        assert contrast(colour(tab, "on-main"), colour(tab, "main")) >= 4.5


def test_an_event_says_why_it_was_decided_so(open_page: Any, running: Running) -> None:
    tab = open_page(key=running.news.read_key)
    chosen = tab.locator("#events tbody tr").first.locator("td").nth(2).inner_text()
    tab.locator("#events button").first.click()
    said = tab.locator("#why-body")
    said.get_by_text(f"{chosen} (played)").wait_for()
    assert said.locator("tbody tr").count() >= 6
    said.get_by_text("Stored context").click()
    assert '"reader"' in said.locator("pre").inner_text()
    tab.keyboard.press("Escape")
    assert tab.locator("#why").is_hidden()
    assert tab.evaluate("document.activeElement.closest('#events') !== null")  # the focus goes back


def test_the_first_run_says_what_to_do(open_page: Any, running: Running) -> None:
    tab = open_page(key=running.empty.read_key)
    code = tab.locator("#first-code").inner_text()
    assert f"curl {running.url}/personalizer/v1.0/rank" in code
    assert f"o2pl simulate {running.url}" in code
    assert tab.locator("#board").is_hidden()


def test_it_says_whether_a_trainer_runs(open_page: Any, running: Running) -> None:
    tab = open_page(key=running.news.read_key)
    assert "no trainer is running" in tab.locator("#health").inner_text()
    election = Election(running.store)
    assert election.held()
    tab.locator("#health", has_text="Ready, but learning is").wait_for()  # it has not learned anything yet
    election.give_up()


def test_logging_out_forgets_the_key(open_page: Any, running: Running) -> None:
    tab = open_page(key=running.news.read_key)
    tab.get_by_role("button", name="Log out").click()
    assert tab.get_by_label("Read key").is_visible()
    assert tab.evaluate("JSON.stringify({...sessionStorage, ...localStorage})").find(running.news.read_key) == -1
    assert running.news.read_key not in tab.url
