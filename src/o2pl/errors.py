"""Errors that users can fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InvalidInput(ValueError):
    """Raised for input that cannot be used. The message says where, what was found and what was expected."""


class NothingLearned(InvalidInput, AttributeError):
    """Raised when a learner is asked for what it learned before it has seen any data."""


class MissingExtra(ImportError):
    """Raised when a package of an extra is not installed. The message says what needs it and how to install it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the known names closest to `name`, or a list of known names."""
    listed = list(dict.fromkeys(known))
    lower = {each.lower(): each for each in listed}
    close = [lower[each] for each in difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.5)]
    if close:
        return f"expected {' or '.join(repr(each) for each in close)}"
    return f"expected one of {', '.join(listed[:30])}" + (", …" if len(listed) > 30 else "")
