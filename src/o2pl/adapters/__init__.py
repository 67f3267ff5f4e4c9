"""Adapters of learners for other libraries: `coba`, `obp` and `sklearn`, one module each.

Nothing is imported from a library before its module is imported.
"""
