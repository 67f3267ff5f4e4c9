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
from o2pl.serving.control_assignment import experiment_of
from o2pl.serving.database import StoreUnavailable
from o2pl.serving.deciding import Acting
from o2pl.serving.settings import Kind, Settings
from o2pl.serving.store import Store

_LOGGER = logging.getLogger("o2pl.serving")
_TRIED = 20  # versions among which an application looks for one that it can serve


class Served(NamedTuple):
    """An application with its served model."""

    application: Application
    acting: Acting
    failed: str | None = None  # why another version than the wanted one is served
    control: Acting | None = None  # decides for the control group; None: the application's own choice
    experiment: str | None = None  # what is compared; None: nothing

    @property
    def policy(self) -> Decider | None:
        """The policy without the exploration of the settings."""
        return self.acting.policy


def decider_of(body: bytes) -> Decider:
    """Load a published model."""
    return _policy(load(io.BytesIO(body), name="model", outside=True))


def _policy(found: Any) -> Decider:
    if not isinstance(found, Decider):
        raise InvalidInput(f"model: found a {type(found).__name__}, expected a saved policy, without its log")
    return found


def policy_for(kind: Kind, settings: Settings, found: Any) -> Decider:
    """Check that an application of this kind can use what was loaded."""
    decider = _policy(found)
    acting = Acting(kind, settings, 1, decider)  # rejects a wrong kind of contexts
    if acting.version == 0:
        raise InvalidInput("model: found a policy for other actions, expected one for the actions in the settings")
    if (kind is Kind.CONTINUOUS) != decider.continuous:
        raise InvalidInput(f"model: found another kind of policy, expected one for {kind.value} actions")
    return decider


class Models:
    """Served models. `of` and `keys` are replaced, never modified, so readers need no lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._asked: dict[int, int] = {}  # the version that was last wanted, of each application
        self.of: dict[int, Served] = {}
        self.keys: Sequence[Any] = ()  # (digest, application id, role, expires at)
        self.changed: Callable[[Served], None] = lambda served: None

    def refresh(self) -> None:
        """Reload from the store. What one application cannot load is its own affair: see `_served`."""
        with self._lock:
            with self._store.reading() as connection:
                known = applications.all_applications(connection)
                keys = applications.all_keys(connection)
                wanted = {each.id: versions.served_version(connection, each.id) for each in known}
            self.of = {each.id: self._served(each, wanted[each.id]) for each in known}
            self.keys = [tuple(row) for row in keys]

    def _served(self, application: Application, version: int) -> Served:
        """Return an application with the wanted version; if that fails, with the last good one, which `failed` says."""
        before = self.of.get(application.id)
        if before is not None and before.application == application and self._asked.get(application.id) == version:
            return before
        failed, acting = None, None
        for candidate in self._candidates(application, version, before):
            try:
                acting = self._acting(application, candidate, before)
                break
            except StoreUnavailable:
                raise
            except Exception as error:  # whatever a file holds, the other applications go on
                failed = failed or f"version {candidate} cannot be served: {error}"
                _LOGGER.error(
                    "model cannot be read", extra={"application": application.name, "reason": f"{candidate}: {error}"}
                )
        if acting is None:
            acting = Acting(application.kind, application.settings)
            acting.try_out()
        self._asked[application.id] = version
        control, experiment, why = self._control(application, before)
        served = Served(application, acting, failed or why, control, experiment)
        self.changed(served)
        return served

    def _control(
        self, application: Application, before: Served | None
    ) -> tuple[Acting | None, str | None, str | None]:  # fmt: skip
        """Return what decides for the control group, what is compared, and why nothing is."""
        settings = application.settings
        experiment, version = experiment_of(settings, application.kind), settings.control_version
        if experiment is None or version is None:
            return None, experiment, None
        try:
            acting = self._acting(application, version, before)
            if acting.version != version:
                raise InvalidInput("found a policy for other actions, expected one for the actions in the settings")
            return acting, experiment, None
        except InvalidInput as error:
            why = f"there is no control group, since its version {version} cannot be served: {error}"
            _LOGGER.error("no control group", extra={"application": application.name, "reason": why})
            return None, None, why

    def _candidates(self, application: Application, version: int, before: Served | None) -> list[int]:
        """Return the versions to try: the wanted one, what is served, and the last ones that were published before."""
        if not version:
            return [0]
        found = [version] if before is None or not before.acting.version else [version, before.acting.version]
        known = self._store.model_versions(application.id, _TRIED)
        older = [row.version for row in known if row.withdrawn is None and row.version < version]
        return [*dict.fromkeys([*found, *older])]

    def _acting(self, application: Application, version: int, before: Served | None) -> Acting:
        decider = None
        if before is not None and before.acting.version == version:
            decider = before.policy
        elif version:
            decider = decider_of(self._store.model_body(application.id, version))
        acting = Acting(application.kind, application.settings, version, decider)
        acting.try_out()
        return acting

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
