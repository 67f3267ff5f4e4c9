"""Readers that encode raw contexts as rows, one per kind of context. Inputs are checked; errors say where."""

from o2pl.encode.dictionaries import DictionaryReader
from o2pl.encode.readers import ContextReader, DenseReader, OfferReader, SetsReader, make_reader
from o2pl.encode.schema import Schema

__all__ = ["ContextReader", "DenseReader", "DictionaryReader", "OfferReader", "Schema", "SetsReader", "make_reader"]
