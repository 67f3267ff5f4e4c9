"""Simulated readers of a news page, with a known best policy, call a running service."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from o2pl.errors import InvalidInput
from o2pl.protocols import Floats, Ints

AGES, DEVICES = ("young", "grown", "old"), ("phone", "desktop")
PARTS = ("night", "morning", "afternoon", "evening")
TOPICS, LENGTHS = ("politics", "football", "cinema", "science", "travel"), ("short", "long")
_BUSY = (429, 503)
_PATIENCE = 20  # attempts of a call that a busy service rejects


# -- the simulated world


class Visit(NamedTuple):
    """A reader, the articles to choose from, and the click probability of each."""

    reader: dict[str, Any]
    articles: list[dict[str, Any]]  # the first one is the editor's choice
    clicks: Floats


@dataclass(frozen=True)
class News:
    """Simulated readers: clicks depend on age and topic, device and length, time of day, and article quality.

    log-odds of a click = -1.2 + taste[age, topic] + ease[device, length] + mood[part of the day, topic] + quality. The
    editor's choice is the article with the highest click rate over all readers: it is the baseline.
    """

    seed: int = 0
    pool: int = 20  # articles
    offered: int = 6  # on a page

    @cached_property
    def _effects(self) -> tuple[Floats, Floats, Floats, Floats, Ints, Ints]:
        generator = np.random.default_rng(self.seed)
        taste = generator.normal(0, 1.6, (len(AGES), len(TOPICS)))
        ease = np.array([[0.6, -0.6], [-0.3, 0.3]])
        mood = generator.normal(0, 0.5, (len(PARTS), len(TOPICS)))
        quality = generator.normal(0, 0.2, self.pool)
        topics, lengths = np.arange(self.pool) % len(TOPICS), np.arange(self.pool) // len(TOPICS) % len(LENGTHS)
        return taste, ease, mood, quality, topics, lengths

    def probabilities(self, age: int, device: int, part: int, articles: Ints) -> Floats:
        taste, ease, mood, quality, topics, lengths = self._effects
        topic, length = topics[articles], lengths[articles]
        score = -1.2 + taste[age, topic] + ease[device, length] + mood[part, topic] + quality[articles]
        return np.asarray(1 / (1 + np.exp(-score)))

    @cached_property
    def _liked(self) -> Floats:
        """Return the click rate of each article over all readers and hours, [pool]."""
        every = np.arange(self.pool)
        cases = [(a, d, p) for a in range(len(AGES)) for d in range(len(DEVICES)) for p in range(len(PARTS))]
        return np.asarray(np.mean([self.probabilities(*case, every) for case in cases], axis=0))

    def visit(self, generator: np.random.Generator, hour: int | None = None) -> Visit:
        """Draw a visit. hour: hour of the day; None: random."""
        age, device = int(generator.integers(len(AGES))), int(generator.integers(len(DEVICES)))
        part = (int(generator.integers(24)) if hour is None else hour) // 6
        articles = generator.choice(self.pool, self.offered, replace=False)
        articles = articles[np.argsort(-self._liked[articles], kind="stable")]
        topics, lengths = self._effects[4:]
        reader = {"reader": {"age": AGES[age], "device": DEVICES[device]}, "time": {"part": PARTS[part]}}
        named = [
            {"id": f"article-{k:02d}", "topic": TOPICS[topics[k]], "length": LENGTHS[lengths[k]]} for k in articles
        ]
        return Visit(reader, named, self.probabilities(age, device, part, articles))


# -- the client


class ServiceClient:
    """A client with one persistent connection. Calls are retried while the service says that it is busy."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"url: found {url!r}, expected one such as http://127.0.0.1:8000")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection, self._url = kind(parts.hostname, parts.port, timeout=30), url
        self._path = parts.path.rstrip("/")
        self._headers = {"Ocp-Apim-Subscription-Key": key, "Content-Type": "application/json"}

    def close(self) -> None:
        self._connection.close()

    def post(self, path: str, body: Any) -> Any:
        for attempt in range(_PATIENCE):
            status, text = self._sent(path, body)
            if status < 300:
                return json.loads(text) if text else None
            if status not in _BUSY:
                break
            time.sleep(min(0.05 * 2**attempt, 2.0))
        if status in (401, 403):
            raise InvalidInput("key: the service refused it; expected a write key of an application (`o2pl app key`)")
        raise InvalidInput(f"{path}: the service answered {status}: {text.decode(errors='replace')[:300]}")

    def _sent(self, path: str, body: Any) -> tuple[int, bytes]:
        try:
            self._connection.request("POST", self._path + path, json.dumps(body), self._headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next call opens it again
            raise InvalidInput(f"url: found no service at {self._url} ({error}); start one with `o2pl serve`") from None


def rank(service: ServiceClient, event: str, visit: Visit) -> int:
    """Call Personalizer's rank API. Returns the index of the chosen article."""
    actions = [
        {"id": article["id"], "features": [{"topic": article["topic"], "length": article["length"]}]}
        for article in visit.articles
    ]
    body = {"eventId": event, "contextFeatures": [visit.reader], "actions": actions}
    found = service.post("/personalizer/v1.0/rank", body)["rewardActionId"]
    return [article["id"] for article in visit.articles].index(found)


def reward(service: ServiceClient, event: str, value: float) -> None:
    service.post(f"/personalizer/v1.0/events/{event}/reward", {"value": value})


# -- the run


class Played(NamedTuple):
    """The result of one call, and the expected reward of the reference policies for the same visit."""

    earned: float
    chosen: float  # click probability of the chosen article
    best: float
    uniform: float
    editor: float


def visits(
    url: str, key: str, calls: int, *, clients: int = 4, rate: float = 0.0, seed: int = 0, only_clicks: bool = False,
    world: News | None = None,
) -> Iterator[Played]:  # fmt: skip
    """Yield rank and reward calls of several parallel clients. rate: calls per second; 0: unlimited."""
    world, lock, ready = world or News(), threading.Lock(), threading.Condition()
    done: list[Played] = []
    problems: list[BaseException] = []
    begun, started, name = 0, time.monotonic(), f"{time.time_ns():x}"

    def client(number: int, service: ServiceClient) -> None:
        nonlocal begun
        generator = np.random.default_rng([seed, number])
        while True:
            with lock:
                if begun >= calls or problems:
                    return
                begun, turn = begun + 1, begun
            if rate:
                time.sleep(max(0.0, started + turn / rate - time.monotonic()))
            visit, event = world.visit(generator), f"reader-{name}-{turn}"
            place = rank(service, event, visit)
            clicked = float(generator.random() < visit.clicks[place])
            if clicked or not only_clicks:
                reward(service, event, clicked)
            p = visit.clicks
            with ready:
                done.append(Played(clicked, float(p[place]), float(p.max()), float(p.mean()), float(p[0])))
                ready.notify()

    def run(number: int) -> None:
        try:
            with closing(ServiceClient(url, key)) as service:
                client(number, service)
        except BaseException as error:
            with ready:
                problems.append(error)
                ready.notify()

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(clients)]
    for thread in threads:
        thread.start()
    given = 0
    while given < calls:
        with ready:
            while given == len(done) and not problems:
                ready.wait()
            if problems:
                raise problems[0]
            fresh = done[given:]
        yield from fresh
        given += len(fresh)
    for thread in threads:
        thread.join()
