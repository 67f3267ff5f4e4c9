"""Contexts as people have them, to rows: one reader for each kind. What is read is checked; an error says where."""

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
