"""Readers that encode raw contexts as rows, one per kind of context. Inputs are checked; errors say where."""

from o2pl.contexts.dictionaries import DictionaryReader
from o2pl.contexts.frames import Frame, as_frame
from o2pl.contexts.offers import Offer
from o2pl.contexts.readers import ContextReader, DenseReader, OfferReader, SetsReader, make_reader
from o2pl.contexts.records import Records
from o2pl.contexts.schema import Schema

__all__ = [
    "ContextReader",
    "DenseReader",
    "DictionaryReader",
    "Frame",
    "Offer",
    "OfferReader",
    "Records",
    "Schema",
    "SetsReader",
    "as_frame",
    "make_reader",
]
