"""The learned state of a learner: its log, its acting policy, its file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from o2pl.data.interactions import Interactions, interactions_with_names
from o2pl.engine.change import Changed
from o2pl.engine.decider import Decider
from o2pl.engine.engine import Engine
from o2pl.errors import NothingLearned
from o2pl.learners.params import Parameters
from o2pl.protocols import Array, Floats
from o2pl.storage import encode_for_storage, write_storage
from o2pl.validation import RewardRange


class Learned(Parameters):
    """Parameters, and an engine created at the first use."""

    _engine: Engine | None = None
    _removed: tuple[int | str, ...] = ()  # actions that are not chosen any more, by name or index

    @property
    def feature_names_in_(self) -> tuple[str, ...]:
        """The names of the context columns (data frame columns or dictionary keys); empty if they have no names."""
        schema = self._begun().encoder.schema
        return () if schema is None else tuple(field.name for field in schema.fields)

    @property
    def log_(self) -> Interactions:
        """The log of interactions so far."""
        engine = self._begun()
        log, schema = engine.log.columns, engine.encoder.schema
        if engine.scale is not None and not engine.scale.within:
            log = log.of_unknown_range()  # some rewards are beyond the range they are counted in
        if schema is not None and log.form == "dense":
            return interactions_with_names(log, schema.names)
        return log

    @property
    def reward_range_(self) -> RewardRange:
        """The range whose ends count as 0 and 1: as given, or that of the rewards so far. See `reward_range`."""
        ends = self._begun().log.reward_range
        assert ends is not None
        return ends

    @property
    def effort_(self) -> tuple[int, int]:
        """The number of solves so far, and of their evaluations of the objective."""
        return self._begun().effort

    @property
    def changes_(self) -> list[Changed]:
        """The detected changes: the row of detection, the first row learned from since then, and the evidence."""
        return self._begun().changes

    @property
    def n_features_in_(self) -> int:
        return self._begun().log.width

    def snapshot(self) -> Decider:
        """Return the current acting policy without the log, as an immutable and thread-safe `Decider`."""
        return self._begun().snapshot()

    def _begun(self) -> Engine:
        if self._engine is None:
            raise NothingLearned(f"{type(self).__name__} has seen no data: call act, update, partial_fit or fit first")
        return self._engine

    def _likelihoods(self, contexts: object, actions: Array) -> Floats:
        """Return π(a|x) of the acting policy for checked rows, [n]."""
        return self._begun().decider.likelihoods(contexts, actions)

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save everything to one file that `o2pl.load` reads. The loaded learner continues exactly like this one."""
        params = self.get_params()
        if isinstance(params["random_state"], np.random.Generator):
            params["random_state"] = None  # its state is saved with the stream
        header: dict[str, Any] = {
            "class": type(self).__name__,
            "params": {n: encode_for_storage(v) for n, v in params.items()},
        }
        arrays: dict[str, Array] = {}
        if self._engine is not None:
            state, arrays = self._engine.state()
            header |= {"engine": state, "width": self._engine.log.width, "n_actions": getattr(self, "n_actions_", None)}
            header["contexts"] = [self._engine.encoder.kind, self._engine.encoder.shared]
            if self._engine.log.action_names:
                header["names"] = encode_for_storage(self._engine.log.action_names)
            if self._removed:
                header["removed"] = list(self._removed)
            if self._engine.encoder.schema is not None:
                header["schema"] = encode_for_storage(self._engine.encoder.schema)
        write_storage(path, header, arrays)
