"""What a learner has learned: its log, its acting policy, its file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from o2pl.interactions import Interactions, replace_names
from o2pl.learners.changes import Changed
from o2pl.learners.decider import Decider
from o2pl.learners.engine import Engine
from o2pl.learners.params import Parameters
from o2pl.protocols import Array, Floats
from o2pl.storage import encode, write


class Learned(Parameters):
    """Parameters, and an engine that the first use makes."""

    _engine: Engine | None = None
    _noticed: tuple[str, int | None] = ("row", None)  # the kind of contexts; how many numbers are the user's

    @property
    def feature_names_in_(self) -> tuple[str, ...]:
        """Of the columns of frames, or the keys of rows, that it began with; none where contexts have no names."""
        schema = self._begun().reader.schema
        return () if schema is None else tuple(field.name for field in schema.fields)

    @property
    def log_(self) -> Interactions:
        """The interactions so far."""
        log, schema = self._begun().log.columns, self._begun().reader.schema
        if schema is not None and isinstance(log.contexts, np.ndarray):
            return replace_names(log, schema.names)
        return log

    @property
    def effort_(self) -> tuple[int, int]:
        """Solves so far, and evaluations of the objective in them."""
        return self._begun().effort

    @property
    def changes_(self) -> list[Changed]:
        """Changes of the world that were noticed: at which row, the row that is learned from since, the evidence."""
        return self._begun().changes

    @property
    def n_features_in_(self) -> int:
        return self._begun().log.width

    def snapshot(self) -> Decider:
        """The acting policy of this moment, without the log. It decides, never changes, and threads may share it."""
        return self._begun().snapshot()

    def _begun(self) -> Engine:
        if self._engine is None:
            raise AttributeError(f"this {type(self).__name__} has seen no data: call act, update, partial_fit or fit")
        return self._engine

    def _likelihoods(self, contexts: Any, actions: Array) -> Floats:
        """π(a|x) of the acting policy, of checked rows, [n]."""
        return self._begun().decider.likelihoods(contexts, actions)

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Everything, to one file that `o2pl.load` reads: the loaded learner goes on exactly as this one would."""
        params = self.get_params()
        if isinstance(params["random_state"], np.random.Generator):
            params["random_state"] = None  # its position is in the stream's state
        header: dict[str, Any] = {"class": type(self).__name__, "params": {n: encode(v) for n, v in params.items()}}
        arrays: dict[str, Array] = {}
        if self._engine is not None:
            state, arrays = self._engine.state()
            header |= {"engine": state, "width": self._engine.log.width, "n_actions": getattr(self, "n_actions_", None)}
            header["contexts"] = list(self._noticed)
            if self._engine.log.action_names:
                header["names"] = encode(self._engine.log.action_names)
            if self._engine.reader.schema is not None:
                header["schema"] = encode(self._engine.reader.schema)
        write(path, header, arrays)
