"""Errors that users can mend."""


class InvalidInput(ValueError):
    """Input that cannot be used. The message says where, what was found and what was expected."""


class MissingExtra(ImportError):
    """A package of an extra that is not installed. The message says what needs it and how to install it."""
