"""Contexts as people have them, to rows: one reader for each kind. What is read is checked; an error says where."""

from o2pl.contexts.dictionaries import DictionaryReader
from o2pl.contexts.readers import ContextReader, DenseReader, SetsReader, make_reader

__all__ = ["ContextReader", "DenseReader", "DictionaryReader", "SetsReader", "make_reader"]
