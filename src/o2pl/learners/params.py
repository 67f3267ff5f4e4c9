"""scikit-learn conventions (`get_params`, `set_params`, `clone`) without the slow import of scikit-learn."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self, TypeVar

from o2pl.errors import InvalidInput

_Class = TypeVar("_Class", bound=type)


def refusing_params(**retired: str) -> Callable[[_Class], _Class]:
    """Let a constructor refuse arguments that no longer are, by what replaces them; files may still have them."""

    def decorated(cls: _Class) -> _Class:
        init: Any = cls.__init__  # type: ignore[misc]

        @functools.wraps(init)
        def checked(self: object, *args: object, **settings: object) -> None:
            for name in retired.keys() & settings.keys():
                raise InvalidInput(f"{name}: found {settings[name]!r}, expected nothing: {retired[name]}")
            init(self, *args, **settings)

        cls.__init__, cls._retired = checked, tuple(retired)  # type: ignore[misc,attr-defined]
        return cls

    return decorated


class Parameters:
    """Base class whose constructor only stores its arguments."""

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: object) -> Self:
        """Set constructor arguments of a learner without data; one that has learned keeps its settings."""
        unknown = sorted(set(params) - set(self._names()))
        if unknown:
            raise InvalidInput(f"set_params: found {unknown}, expected names among {self._names()}")
        other = [name for name, value in params.items() if repr(value) != repr(getattr(self, name))]
        if other and getattr(self, "_engine", None) is not None:
            raise InvalidInput(
                f"set_params: found {other[0]}={params[other[0]]!r} for a learner that has learned with"
                f" {getattr(self, other[0])!r}, expected one without data: sklearn's clone(learner).set_params(...), or"
                f" a new {type(self).__name__}(...)"
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        given = [f"{n}={v!r}" for n, v in self.get_params().items() if repr(v) != repr(defaults[n].default)]
        return f"{type(self).__name__}({', '.join(given)})"
