"""Logs from files."""

from o2pl.formats.columns import read_log

__all__ = ["read_log"]
