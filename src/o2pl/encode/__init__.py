"""The one door of contexts: `Encoder` makes rows of whatever is given. Inputs are checked; errors say where."""

from o2pl.encode.encoder import Encoder
from o2pl.encode.schema import Schema

__all__ = ["Encoder", "Schema"]
