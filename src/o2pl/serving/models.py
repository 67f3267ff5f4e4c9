"""What a server serves: applications with settings and models, and keys.

It is refreshed from the store regularly. A new version replaces the old one between two calls: a running call finishes
with the version it started with.
"""

from __future__ import annotations

import asyncio
import io
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from o2pl.engine.decider import Decider
from o2pl.errors import InvalidInput
from o2pl.learners import load
from o2pl.serving import applications, versions
from o2pl.serving.applications import Application
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.deciding import Acting
from o2pl.serving.settings import Kind
from o2pl.serving.store import Store

_LOGGER = logging.getLogger("o2pl.serving")


class Served(NamedTuple):
    """An application with its served model."""

    application: Application
    acting: Acting


def decider_of(body: bytes) -> Decider:
    """Load a published model."""
    found = load(io.BytesIO(body), name="model")
    if not isinstance(found, Decider):
        raise InvalidInput(f"model: found a {type(found).__name__}, expected a saved policy, without its log")
    return found


def check_model(application: Application, body: bytes) -> Decider:
    """Load a policy and check that this application can use it."""
    decider = decider_of(body)
    acting = Acting(application.kind, application.settings, 1, decider)  # rejects a wrong kind of contexts
    if acting.version == 0:
        raise InvalidInput("model: found a policy for other actions, expected one for the actions in the settings")
    if (application.kind is Kind.CONTINUOUS) != decider.continuous:
        raise InvalidInput(f"model: found another kind of policy, expected one for {application.kind.value} actions")
    return decider


def publish(store: Store, application: Application, policy: Any, pinned: bool = False) -> int:
    """Publish a policy, or what a learner has learned, as the newest version. pinned: serve it until it is unpinned."""
    body = (policy if isinstance(policy, Decider) else policy.snapshot()).to_bytes()
    check_model(application, body)
    newest = store.model_versions(application.id, 1)
    learned = (newest[0].outcome_id, newest[0].rows) if newest else (0, 0)
    version = store.add_model(application.id, body, *learned)
    if pinned:
        store.pin(application.id, version)
    return version


class Models:
    """Served models. `of` and `keys` are replaced, never modified, so readers need no lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._loaded: dict[int, tuple[int, int, Decider | None]] = {}  # requested version, served version, decider
        self.of: dict[int, Served] = {}
        self.keys: Sequence[Any] = ()  # (digest, application id, role)
        self.changed: Callable[[Served], None] = lambda served: None

    def refresh(self) -> None:
        """Reload from the store."""
        with self._lock:
            with self._store.reading() as connection:
                known = applications.all_applications(connection)
                keys = applications.all_keys(connection)
                wanted = {each.id: versions.served_version(connection, each.id) for each in known}
                bodies = {
                    number: versions.model_body(connection, number, version)
                    for number, version in wanted.items()
                    if version and self._loaded.get(number, (0, 0, None))[0] != version
                }
            self.of = {each.id: self._served(each, wanted[each.id], bodies.get(each.id)) for each in known}
            self.keys = [tuple(row) for row in keys]

    def _served(self, application: Application, version: int, body: bytes | None) -> Served:
        before = self.of.get(application.id)
        asked, own, decider = self._loaded.get(application.id, (0, 0, None))
        if asked == version and before is not None and before.application == application:
            return before
        acting = Acting(application.kind, application.settings, own, decider)
        if asked != version:
            try:
                new = None if body is None else decider_of(body)
                acting = Acting(application.kind, application.settings, version, new)
                own, decider = version, new
            except InvalidInput as error:  # damaged: keep serving the previous one
                _LOGGER.error("model cannot be read", extra={"application": application.name, "reason": str(error)})
        acting.try_out()
        self._loaded[application.id] = version, own, decider
        served = Served(application, acting)
        self.changed(served)
        return served

    async def follow(self, every: float = 0.5) -> None:
        """Call `refresh` forever."""
        loop, gone = asyncio.get_running_loop(), False
        while True:
            await asyncio.sleep(every)
            try:
                await loop.run_in_executor(None, self.refresh)
                gone = False
            except StoreUnavailable as error:
                if not gone:
                    _LOGGER.error("store cannot be read; serving the last known models", extra={"reason": str(error)})
                gone = True
            except Exception:
                _LOGGER.exception("checking for new models failed")
