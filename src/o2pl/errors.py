"""Errors that users can mend."""


class InvalidInput(ValueError):
    """Input that cannot be used. The message says where, what was found and what was expected."""
