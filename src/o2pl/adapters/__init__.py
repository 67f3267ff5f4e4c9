"""Learners in the shapes that other libraries ask for: `coba`, `obp` and `sklearn`, a module each.

Nothing is imported from those libraries before its module is.
"""
